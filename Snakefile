# Framebench. The workflow itself is in workflow/Snakefile; this file lets it run from here.
import sys
from pathlib import Path

sys.path.insert(0, f"{workflow.basedir}/workflow")

from framebench.config.validation import ConfigError
from framebench.config.yaml_files import read_mapping

# Snakemake's own message says neither which file is broken nor where.
try:
    for file in ["config/config.yaml", *workflow.overwrite_configfiles]:
        if Path(file).suffix in (".yaml", ".yml"):
            read_mapping(Path(file))
except ConfigError as error:
    print(f"framebench: {error}", file=sys.stderr)
    raise SystemExit(1)


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


module bench:
    snakefile:
        "workflow/Snakefile"
    config:
        config


use rule * from bench


# A module's own handlers are not called for it.
onstart:
    bench.onstart(log=log)


onsuccess:
    bench.onsuccess(log=log)


onerror:
    bench.onerror(log=log)
