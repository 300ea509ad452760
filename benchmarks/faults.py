"""A fault campaign: damaged inputs and odd command lines at every door, kills at random moments, and what must hold.

    python benchmarks/faults.py [--cases 3000] [--kills 20] [--seconds S] [--seed 0] [--only DOOR]
        [--case NUMBER] [--kill NUMBER] [--moments] [--limit 60] [--out FILE]

Every case is a door and a mutation, chosen by its number from the seed; `--case NUMBER` repeats one and shows what was
done and printed. A command must end with code 0, 2 or 130 and without a traceback; of a damaged file it makes what it
makes of the whole one, or refuses; a refusal leaves nothing behind, and the corrected command works; no cell, id or
password is printed. A command that is killed and repeated ends with the bytes of one that was not.
"""

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before PyTorch is imported: a child is forked from one thread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="DOOR", help="cases of this door alone; their numbers stay")
    parser.add_argument("--case", type=int, metavar="NUMBER", help="repeat one case and show it")
    parser.add_argument("--kill", type=int, metavar="NUMBER", help="repeat one kill and show it")
    parser.add_argument("--moments", action="store_true", help="kill when a file becomes durable, never by the clock")
    parser.add_argument("--limit", type=int, default=60, help="seconds after which a command hangs")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the summary as JSON")
    given = parser.parse_args()

    from fault_campaign.campaign import Campaign
    from fault_campaign.children import warm

    warm()
    with Campaign(given.seed, given.limit, lambda line: print(line, flush=True)) as campaign:
        if given.case is not None:
            sys.exit(campaign.show_case(given.case))
        if given.kill is not None:
            sys.exit(campaign.show_kill(given.kill, not given.moments))
        summary = campaign.run(given.cases, given.kills, given.only, given.seconds, not given.moments)
    summary["command"] = " ".join(["python", "benchmarks/faults.py", *sys.argv[1:]])
    if given.out is not None:
        given.out.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    sys.exit(1 if summary["failures"] else 0)


if __name__ == "__main__":
    main()
