"""Result files of the scripts that time on a CPU."""

import json
import os
import platform


def cpu_name() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        names = (line.partition(":")[2].strip() for line in info if line.startswith("model name"))
        return next(names, platform.machine())


def write(head: dict, rows: list[dict], machine: dict, output: str | None) -> None:
    """Prints a result file of `rows`, with the processor and the load of this machine, and writes it to `output` if there is one."""
    machine = {"cpu": cpu_name(), "os": platform.system(), **machine}
    result = {"schema": 1, "status": "complete", "machine": machine, **head, "load": os.getloadavg()[0]}
    text = json.dumps(result, indent=1)[:-2] + ',\n "rows": [\n' + ",\n".join(map(json.dumps, rows)) + "\n ]\n}\n"
    print(text, end="")
    if output:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
