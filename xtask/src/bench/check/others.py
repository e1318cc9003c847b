"""Times other programs on a graph: once in a process of its own, as people run them, and inside of one, without its start.

Arguments: the program (agentproofx or costwright), the graph (a JSON file for the first, a Python file for the second),
and how many rounds. Prints the median milliseconds of the rounds, and one line of what was answered.
"""

import io
import json
import statistics
import sys
import time
from contextlib import redirect_stdout

program, path, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])


def agentproofx():
    from agentproof import verify
    from agentproof.graph.model import graph_from_dict

    def once():
        with open(path, encoding="utf-8") as file:
            report = verify(graph_from_dict(json.load(file)))["structural"]
        return f"{report['passed_count']} of {report['total']} checks pass"

    return once


def costwright():
    from costwright.cli import main

    def once():
        told = io.StringIO()
        with redirect_stdout(told):
            main(["check", path, "--json"])
        unit = json.loads(told.getvalue())["units"][0]
        return f"{unit['category']}, at most {unit['bound']['node_executions_ceiling']} node executions"

    return once


once = {"agentproofx": agentproofx, "costwright": costwright}[program]()
times = []
for _ in range(rounds):
    begun = time.perf_counter()
    answer = once()
    times.append((time.perf_counter() - begun) * 1e3)
print(f"{statistics.median(times):.1f}")
print(answer)
