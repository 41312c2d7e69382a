"""python -m evaluator FILE [-C[N]]: result lines, then the number of interactions."""
import sys

from . import run

flag = next((a for a in sys.argv[2:] if a.startswith("-C")), None)
result = run(sys.argv[1], flag is not None, int(flag[2:]) if flag and flag[2:] else None)
print("\n".join(result.lines))
if result.error:
    sys.exit(result.error)
print(f"- Itrs: {result.interactions} interactions")
