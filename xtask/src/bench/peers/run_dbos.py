"""Runs workflows of one step that repeats, recorded in SQLite."""

import sys

from dbos import DBOS

steps, runs, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
DBOS(config={
    "name": "peer",
    "system_database_url": f"sqlite:///{path}",
    "run_admin_server": False,
    "log_level": "ERROR",
})


@DBOS.step()
def work(done):
    return {"done": done + 1, "summary": "one more"}


@DBOS.workflow()
def repeat(steps):
    done = 0
    while done < steps:
        done = work(done)["done"]
    return done


DBOS.launch()
handles = [DBOS.start_workflow(repeat, steps) for _ in range(runs)]
assert all(handle.get_result() == steps for handle in handles)
DBOS.destroy()
