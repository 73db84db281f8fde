"""What notebooks show: the tensors of a model, and a table of its kernels with a bar for each one's size."""

from __future__ import annotations

from html import escape
from typing import Any, Iterable

MOST_ROWS = 40


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _tensors(model: Any) -> str:
    rows = [("input", s) for s in model.inputs] + [("output", s) for s in model.outputs]
    return _table(
        ["", "name", "type", "shape"],
        [[kind, escape(s.name), s.type, escape(" × ".join(map(str, s.shape)) or "scalar")] for kind, s in rows],
    )


def _bar(value: int, most: int) -> str:
    width = round(160 * value / max(most, 1))
    return (
        f'<svg width="160" height="10" role="img" aria-label="{value}"><rect width="{width}" height="10" fill="#c2571a"/></svg>'
    )


def _kernels(model: Any) -> str:
    kernels = sorted(model.kernels(), key=lambda k: (-k["uses"], k["symbol"]))
    most = max((k["uses"] for k in kernels), default=1)
    rows = [
        [f"<code>{escape(k['symbol'])}</code>", f"<code>{k['hash'][:10]}</code>", str(k["uses"]), _bar(k["uses"], most)]
        for k in kernels[:MOST_ROWS]
    ]
    more = f"<p>{len(kernels) - MOST_ROWS} more kernels</p>" if len(kernels) > MOST_ROWS else ""
    return f"<p>{len(kernels)} kernels</p>" + _table(["kernel", "hash", "launches", ""], rows) + more


def html_of_model(model: Any) -> str:
    return f"<div><p><b>kiln.Model</b> <code>{escape(model.path)}</code></p>{_tensors(model)}{_kernels(model)}</div>"


def html_of_session(session: Any) -> str:
    program = session.last_program() if not session.closed else None
    facts = _table(["of the last program", ""], [[escape(k), str(v)] for k, v in program.items()]) if program else ""
    return f"<div><p><b>kiln.Session</b> on {escape(session.device)}</p>{_tensors(session)}{facts}</div>"
