# Configuration, and look-ups of the rules.
from pathlib import Path

from snakemake.exceptions import WorkflowError

try:
    from framebench.driver import Driver, results_folder
    from framebench.driver.call import config_file
    from framebench.tables import columns
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


TABLES = columns.declarations()


# <results> in the patterns of all rules.
pathvars:
    results=results_folder(config),


def records_of_call(wildcards):
    """Records of all runs and searches that the call makes."""
    return driver.state.records


def records_before_round(wildcards):
    """Records that a round needs before it decides."""
    return driver.state.before_round(int(wildcards.number))


def page_before_round(wildcards):
    """Command that makes tables and report before a round."""
    return driver.state.page_before_round(int(wildcards.number), lookups.driver)


def checks_of_call(wildcards):
    """Files for the records of small verifications and peak-FLOPS benchmarks."""
    return driver.state.missing(driver.state.table.checks)


def list_of_files(wildcards):
    """File that lists the sources of runs.csv, newer than runs.csv if one of them has changed."""
    return driver.list_of_files()


def results_folder_of_call(wildcards):
    """Results folder."""
    return driver.results


def records_folder_of_call(wildcards):
    """Folder of all runs in the results."""
    return driver.records_folder


def given_records(wildcards):
    """Records of the target report."""
    return str(driver.settings.records or driver.records_folder)


def table(file):
    """CSV of a table, with its place in Snakemake's own report.

    Snakemake does not remove it before the job, so it stays if the job fails.
    """
    known = TABLES[Path(file).stem]
    return report(
        update(file),
        category="Tables",
        subcategory=known["group"],
        labels={"table": known["title"]},
        caption="../report/tables.rst",
    )


def names_of(files):
    """Names of the tables among files."""
    return sorted({Path(file).stem for file in files})
