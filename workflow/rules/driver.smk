# Configuration, and functions of the rules below.
from pathlib import Path

from snakemake.exceptions import WorkflowError

try:
    from framebench.driver import Driver, config_file, results_folder
except ModuleNotFoundError as error:
    if error.name == "framebench":
        raise WorkflowError(
            "Framebench cannot be fetched file by file (github(..), gitlab(..), gitfile(..)): its "
            "rules run programs next to them. Clone it, and name the file of the clone:\n"
            "  git clone URL framebench\n"
            "  module framebench:\n"
            '      snakefile: "framebench/workflow/Snakefile"\n'
            "      config: config\n"
            "  use rule * from framebench"
        ) from None
    raise WorkflowError(
        f"{error.name} is not installed next to Snakemake; pip install -r requirements.txt, or "
        "./bootstrap in the folder of Framebench, brings all that is needed"
    ) from error


configfile: config_file(workflow)


# <results> in the patterns of all rules.
pathvars:
    results=results_folder(config),


def table(file):
    """CSV of a table, with its place in Snakemake's own report.

    It is not removed before the job: where that fails, the former table is still there.
    """
    group, title = driver.tables.heading(Path(file).stem)
    return report(
        update(file),
        category="Tables",
        subcategory=group,
        labels={"table": title},
        caption="../report/tables.rst",
    )


def names_of(files):
    """Names of the tables among files."""
    return sorted({Path(file).stem for file in files})
