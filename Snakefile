# Framebench. The workflow itself is in workflow/Snakefile; this file lets it run from here.
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
    bench.onstart()


onsuccess:
    bench.onsuccess()
