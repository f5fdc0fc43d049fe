# Configuration, and functions of the rules below.
from snakemake.exceptions import WorkflowError

try:
    from framebench.driver import Driver, config_file, outcome_file
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


def csv_of(name):
    """CSV of a table, with its place in Snakemake's own report.

    It is not removed before the job: where that fails, the former table is still there.
    """
    group, title = driver.tables.heading(name)
    return report(
        update(f"{driver.tables.folder}/{name}.csv"),
        category="Tables",
        subcategory=group,
        labels={"table": title},
        caption="../report/tables.rst",
    )


def table_files(name):
    """CSV and Markdown of a table."""
    return [csv_of(name), update(f"{driver.tables.folder}/{name}.md")]


def names_of(files):
    """Names of the tables among files."""
    return [
        file[: -len(".csv")].rpartition("/")[2]
        for file in files
        if file.endswith(".csv")
    ]
