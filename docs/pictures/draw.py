"""Draws tree.svg: sample.jsonl, as `talktree tree` prints it on a terminal with its colours."""

import html
import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
WIDTH, HEIGHT, SIZE, MARGIN = 8.4, 20, 14, 16
COLOURS = {31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#56d4dd"}


def pieces(line):
    """Returns the pieces of a line, each with the style it is printed in."""
    style = {}
    for codes, text in re.findall(r"\x1b\[([0-9;]*)m|([^\x1b]+)", line):
        if text:
            yield text, "".join(f' {name}="{value}"' for name, value in style.items())
            continue
        for code in (int(code or 0) for code in codes.split(";")):
            if code == 0:
                style = {}
            elif code == 1:
                style["font-weight"] = "bold"
            elif code == 2:
                style["fill-opacity"] = "0.55"
            else:
                style["fill"] = COLOURS[code]


def drawn(line, top):
    """Returns a line as SVG. Each piece has its place, so that any monospaced font lines up."""
    spans, column = [], 0
    for text, style in pieces(line):
        spans.append(f'<tspan x="{MARGIN + column * WIDTH:.1f}"{style}>{html.escape(text, quote=False)}</tspan>')
        column += len(text)
    return f'<text y="{top}" xml:space="preserve">{"".join(spans)}</text>', column


def talktree(store, *args):
    """Returns what the command prints."""
    command = ["cargo", "run", "-q", "-p", "talktree-cli", "--", "--store", store, *args]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE).stdout


with tempfile.TemporaryDirectory() as folder:
    store = f"{folder}/talk.db"
    talktree(store, "import", "--strict", str(HERE / "sample.jsonl"))
    printed = talktree(store, "--color", "always", "tree", "deploy")

lines = ["\x1b[1m$ talktree tree deploy"] + printed.splitlines()
texts = [drawn(line, MARGIN + SIZE + HEIGHT * row) for row, line in enumerate(lines)]
width = round(2 * MARGIN + WIDTH * max(columns for _, columns in texts))
height = 2 * MARGIN + HEIGHT * len(lines)
svg = [
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
    f'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="{SIZE}" fill="#e6edf3">',
    f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
    *(text for text, _ in texts),
    "</svg>",
]
(HERE / "tree.svg").write_text("\n".join(svg) + "\n")
