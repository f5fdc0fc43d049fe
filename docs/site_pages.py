"""MkDocs hook for the pages, linked files and sample report of the site.
The pages keep their paths in the tree, so that links work in both."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
#: Records of a run of the suite `quick`, from `framebench archive --redact`.
RECORDS = ROOT / "docs" / "sample.tar.xz"
#: Link to a file of the tree, without its anchor.
_LINK = re.compile(r"\]\(([^)#:\s]+)")


def on_files(files: Files, config: Any) -> Files:
    """Return the site's files, replacing those in the docs folder; called by MkDocs."""
    names = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "config/README.md")
    pages = [ROOT / name for name in names]
    pages += sorted((ROOT / "docs").glob("*.md"))
    linked = {target for page in pages for target in _targets(page)} - {*pages}
    linked.add(ROOT / "docs" / "site.css")
    # Files of the theme stay: its style and script.
    result = Files([file for file in files if file.src_dir != config["docs_dir"]])
    for path in [*pages, *sorted(linked)]:
        name = path.relative_to(ROOT).as_posix()
        result.append(File.generated(config, name, abs_src_path=str(path)))
    for name, content in _sample().items():
        result.append(File.generated(config, name, content=content))
    return result


def _targets(page: Path) -> set[Path]:
    """Return the files that a page links to."""
    named = (page.parent / target for target in _LINK.findall(page.read_text()))
    return {path.resolve() for path in named if path.is_file()}


def _sample() -> dict[str, bytes]:
    """Return the report and tables of a real run, by path in the site."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tarfile.open(RECORDS) as packed:
            packed.extractall(folder, filter="data")
        records, made = folder / "quick" / "runs", folder / "made"
        program = [sys.executable, str(ROOT / "workflow" / "framebench"), "report"]
        arguments = ["--records", str(records), "--results", str(made)]
        subprocess.run([*program, *arguments], check=True, capture_output=True)
        tables = {
            f"docs/sample/tables/{path.name}": path.read_bytes()
            for path in sorted((made / "tables").iterdir())
            if path.suffix in (".md", ".csv")
        }
        # The report without links to records, which are not part of the site.
        return {"docs/sample/report.html": (made / "tables" / "report.html").read_bytes(), **tables}
