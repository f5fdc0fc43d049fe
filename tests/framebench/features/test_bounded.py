"""Files that features open without the bounded reader."""

from __future__ import annotations

from ..opening import WORKFLOW, opening_modules

#: Modules that may open files, and how: files written under a new name, and archives that were
#: checked elsewhere.
OPENING = {
    "framebench/features/archive/contents.py": {"zipfile.ZipFile"},
}


def test_no_other_module_opens_a_file() -> None:
    """Fail if a feature opens a file without core.bounded or a reason in OPENING."""
    paths = (WORKFLOW / "framebench" / "features").rglob("*.py")
    assert opening_modules(paths) == OPENING
