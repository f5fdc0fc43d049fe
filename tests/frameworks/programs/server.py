"""Process that imports modules once, and forks each rank of a program that it is asked to run."""

import faulthandler
import importlib
import json
import os
import sys
import traceback

ROOT = os.path.abspath(__file__ + 4 * "/..")


def run_rank(rank, request):
    """Run the rank of a request in this process, which then ends."""
    from tests.frameworks.programs import ranks

    ranks.place.rank, ranks.place.ranks = rank, len(request["places"])
    os.environ.update(request["places"][rank])
    output = os.open(f"{rank}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.dump_traceback_later(request["seconds"], exit=True)  # also out of C code
    try:
        for program in request["before"]:
            ranks.run(program)
        values = ranks.run(request["program"], **request["arguments"])
        if values is not None:
            ranks.answer(**values)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    ranks.await_ranks(request["seconds"])
    os._exit(0)


def serve():
    """Answer each request, a line of JSON, when all of its ranks have ended."""
    sys.path[:1] = [f"{ROOT}/scripts", ROOT]  # modules here are named like frameworks
    for name in [*sys.argv[1:], "harness.kinds.verification", "tests.frameworks.programs.ranks"]:
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        children = []
        for rank in range(len(request["places"])):
            for name in (f"{rank}.done", f"{rank}.json"):
                if os.path.exists(name):
                    os.remove(name)
        for rank in range(len(request["places"])):
            child = os.fork()
            if not child:
                run_rank(rank, request)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        print("done", flush=True)


if __name__ == "__main__":
    serve()
