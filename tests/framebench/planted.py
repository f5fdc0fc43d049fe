"""Names and credentials made up from a seed, in the notations of records and texts."""

from __future__ import annotations

import base64
import random
import string
from typing import NamedTuple

_LETTERS = string.ascii_lowercase
_ALNUM = string.ascii_letters + string.digits


class Planted(NamedTuple):
    """Planted texts. ``secrets``: forbidden in redacted files; ``texts``: texts that
    contain them."""

    secrets: list[str]
    texts: list[str]


def plant(rng: random.Random) -> Planted:
    """Return a user, a host, a project and credentials nobody has, and texts that name them."""

    def word(length: int = 9, letters: str = _LETTERS) -> str:
        return "".join(rng.choice(letters) for _ in range(length))

    user, project, host = "u" + word(), "p" + word(), f"h{word()}{rng.randrange(10, 99)}"
    organisation, password = "o" + word(), "w" + word(12)
    address = ".".join(str(rng.randrange(20, 250)) for _ in range(4))
    uuid = "-".join(word(size, "0123456789abcdef") for size in (8, 4, 4, 4, 12))
    body = word(36, _ALNUM)
    key = "Aa1/" + word(36, _ALNUM)
    tokens = {
        "github": f"ghp_{body}",
        "github of an app": f"gho_{body}",
        "fine-grained": f"github_pat_{body}",
        "aws": "AKIA" + word(16, string.ascii_uppercase + string.digits),
        "slack": f"xoxb-123456-{body}",
        "jwt": f"eyJhbGciOiJIUzI1NiJ9.{word(30, _ALNUM)}.{word(30, _ALNUM)}",
        "hugging face": f"hf_{body}",
        "openai": f"sk-proj-{body}",
        "anthropic": f"sk-ant-api03-{body}",
        "google": f"AIza{body}",
        "gitlab": f"glpat-{body}",
    }
    basic = base64.b64encode(f"{user}:{password}7".encode()).decode()
    texts = [
        *(f"refused: {token}" for token in tokens.values()),
        *(f"X={token}&y" for token in tokens.values()),
        f"AWS_SECRET_ACCESS_KEY={key} {key}",
        f"Authorization: Bearer {body}",
        f"authorization: Basic {basic}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----",
        f"DB_PWD={password} --password {password} --api-key={password} WANDB_APIKEY={password}",
        f'{{"token": "{password}"}} curl -u {user}:{password} x',
        f"cc -I/srv/{project}/x -L/opt/{project} -isystem/{project}/x -Wl,-rpath,/a/{project}",
        f"file:///home/{user}/{project} file:/data/{project}",
        f"C:\\Users\\{user}\\{project} D:/data/{project} C:\\\\Users\\\\{user}\\\\{project}",
        f"\\\\{host}\\{project}\\x \\\\\\\\{host}\\\\{project}",
        f"\"/home/{user}/a b/{project}\" '/srv/{project} x/y' `/srv/c {project}/y`",
        f"%2Fhome%2F{user}%2F{project} ?path=%2fsrv%2f{project}&n=1",
        f"\\/home\\/{user}\\/{project} \\u002fsrv\\u002f{project}",
        f"PATH=/usr/bin:/home/{user}/bin:/opt/{project}/bin:/bin",
        f"../{user}/{project} ./{project}/x $HOME/{project} ${{SCRATCH}}/{project}",
        f"~{user}/{project} ~{user} ~/{project} /home/{user}/a\\ b/{project}",
        f"git@github.com:{organisation}/{project}.git ssh://git@{host}/{organisation}/x",
        f"https://{user}:{password}@git.{organisation}.org/{project}?token={password}",
        f"{user}@{host}:/scratch/{project} {user}@{organisation}.example.org",
        f"UserId={user}(1001) GroupId={user}(1001) WorkDir=/w/{project} NodeList={host},n[1-3]",
        f"BatchHost={host} Account={project} MailUser={user}@x.org StdOut=/w/{project}/%j.out",
        f"srun: error: {host}: task 1: Killed; node {host} has 3; {host}.{organisation}.edu:29500",
        f"{address}:29500 [fe80::{word(4, 'abcdef')}:1234%eth0] ::ffff:{address} {address}.",
        f'{{"user": "{user}", "host": "{host}"}} Nodes={host},n2 S/N {password}',
        f"GPU-{uuid} MIG-GPU-{uuid}/1/0 {uuid} Serial Number: {password}",
        f"USER={user} HOSTNAME={host}; {user} on {host.upper()} and {user}_results",
    ]
    secrets = [user, project, host, organisation, password, address, uuid, uuid[:8], body, basic]
    return Planted([*secrets, key, *tokens.values()], texts)
