#!/usr/bin/env python3
"""Draws the sweeps of bench/README.md ("Sweeps over sizes", on a GPU) as SVG.

    sweep_plot.py [README.md [FOLDER]]      # default: bench/README.md, docs/pictures

A picture for each network: steady ms over the size, both axes logarithmic, a line for each column of times."""
import math
import os
import re
import sys

COLUMNS = [("exact", "#1b6ca8"), ("all sizes", "#3aa17e"), ("torch.compile", "#b5651d"), ("as a graph", "#c2410c")]
UNITS = {"bert": "tokens", "resnet50": "images"}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 520, 320, 52, 28, 120, 40


def rows_of(text):
    """{network: [(size, times)]} of the first table with such columns."""
    head = "| | size | " + " | ".join(name for name, _ in COLUMNS)
    rows = {}
    for line in text[text.index(head):].splitlines()[2:]:
        cells = [c.strip() for c in line.strip("|").split("|")]
        if len(cells) < 6 or not re.fullmatch(r"\d+", cells[1]):
            break
        rows.setdefault(cells[0], []).append((int(cells[1]), [float(c) for c in cells[2:6]]))
    return rows


def picture(name, rows):
    times = [t for _, ts in rows for t in ts]
    low, high = math.log10(min(times)) - 0.05, math.log10(max(times)) + 0.05
    first, last = math.log2(rows[0][0]), math.log2(rows[-1][0])

    def at(size, ms):
        x = LEFT + (math.log2(size) - first) / (last - first) * (WIDTH - LEFT - RIGHT)
        return x, TOP + (high - math.log10(ms)) / (high - low) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="18">{name}, f16: ms over {UNITS[name]}</text>']
    for ms in (0.1, 0.2, 0.5, 1, 2, 5, 10):
        if low <= math.log10(ms) <= high:
            y = at(rows[0][0], ms)[1]
            out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/><text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{ms:g}</text>')
    for size, _ in rows:
        out.append(f'<text x="{at(size, 1)[0]:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{size}</text>')
    ends = sorted((at(rows[-1][0], rows[-1][1][i])[1], i) for i in range(len(COLUMNS)))
    labels, below = {}, -100.0
    for y, i in ends:  # labels do not overlap
        below = max(y + 4, below + 14)
        labels[i] = below
    for i, (label, color) in enumerate(COLUMNS):
        points = " ".join("{:.1f},{:.1f}".format(*at(size, ts[i])) for size, ts in rows)
        out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        out.append(f'<text x="{WIDTH - RIGHT + 8}" y="{labels[i]:.1f}" fill="{color}">{("Kiln, " if i < 2 else "torch, ")}{label.replace("torch.", "")}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    source = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "README.md")
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(here, "..", "docs", "pictures")
    with open(source, encoding="utf-8") as f:
        rows = rows_of(f.read())
    for name, of_network in rows.items():
        with open(os.path.join(folder, f"sweep_{name}_gpu.svg"), "w", encoding="utf-8") as f:
            f.write(picture(name, of_network))


if __name__ == "__main__":
    main()
