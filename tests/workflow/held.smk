# The workflow as a module, whose handlers are not called. After planning it waits while a file
# exists.
import os
import time
from pathlib import Path


configfile: "config/config.yaml"


module bench:
    snakefile:
        "workflow/Snakefile"
    config:
        config


use rule * from bench


onstart:
    Path(os.environ["HELD"]).touch()
    while os.path.exists(os.environ["HELD"] + ".hold"):
        time.sleep(0.05)
