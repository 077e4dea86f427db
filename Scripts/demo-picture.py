#!/usr/bin/env python3
"""Draws a terminal session as SVG: demo-picture.py < session.txt > Docs/demo.svg

Lines that begin with "$ " were typed. Run by hand when what the command says has changed.
"""
import sys
from xml.sax.saxutils import escape

WIDTH, LINE, LEFT, TOP = 860, 19, 18, 46
lines = sys.stdin.read().rstrip("\n").split("\n")
height = TOP + LINE * len(lines) + 14
print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">')
print(f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#1d2330"/>')
for number, colour in enumerate(("#ff6159", "#ffbd2e", "#28c941")):
    print(f'<circle cx="{22 + 20 * number}" cy="20" r="6" fill="{colour}"/>')
print('<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" xml:space="preserve">')
for number, line in enumerate(lines):
    y = TOP + LINE * number + 6
    colour = "#9ecbff" if line.startswith("$ ") else "#85e89d" if "safe" in line or "complete" in line else "#d6dbe5"
    print(f'<text x="{LEFT}" y="{y}" fill="{colour}">{escape(line)}</text>')
print("</g>\n</svg>")
