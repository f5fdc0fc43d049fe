"""Register of all claims, and the table made from it."""

from __future__ import annotations

from framebench.files import marked_block

from .calls import CALLS
from .claim import Claim
from .figures import FLAGS, STATISTICS, VERIFICATION
from .harness import CHECKED, TIMING

#: Page with the table of claims, and the name of its block there.
PAGE, BLOCK = "docs/measuring.md", "claims"

CLAIMS: tuple[Claim, ...] = (*TIMING, *CHECKED, *CALLS, *STATISTICS, *FLAGS, *VERIFICATION)


def table() -> str:
    """Return a Markdown table of claims, planted violations and the files of their tests."""
    rows = [("claim", "planted violations", "tests"), ("---",) * 3]
    for claim in CLAIMS:
        files = dict.fromkeys(
            test.partition("::")[0] for planted in claim.planted for test in planted.tests
        )
        links = [f"[{file.rpartition('/')[2]}](../{file})" for file in files]
        planted = "; ".join(planted.about for planted in claim.planted)
        rows.append((claim.words, planted, ", ".join(links)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def page(text: str) -> str:
    """Return the text of PAGE with the table of claims."""
    return marked_block.replaced(text, BLOCK, table())
