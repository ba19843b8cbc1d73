"""Print the command of the README's code block below ``<!-- command: NAME -->``."""

import re
import sys
from pathlib import Path

text = Path("README.md").read_text(encoding="utf-8")
name = re.escape(sys.argv[1])
match = re.search(rf"<!-- command: {name} -->\s*```\w*\n(.*?)\n```", text, re.DOTALL)
if match is None:
    sys.exit(f"README.md has no block marked <!-- command: {sys.argv[1]} -->")
sys.stdout.write(match[1] + "\n")
