"""Makes python/talktree/aio.pyi, which type checkers read: from the source of `talktree.aio` and of the plain classes.

`python stubs.py` writes it; a test compares it with what this makes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent / "python/talktree"
STUB = PACKAGE / "aio.pyi"

#: How the iterators of a plain class are called in its async face.
ITERATORS = {"__iter__": "__aiter__", "__reversed__": "iter_rev"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def parsed(name: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{name}.py").read_text())


def classes(module: ast.Module) -> dict[str, ast.ClassDef]:
    return {it.name: it for it in module.body if isinstance(it, ast.ClassDef)}


def imports(module: ast.Module, name: str) -> dict[str, str]:
    """Returns the line that imports each name that a module of the package knows."""
    lines: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            lines |= {it.asname or it.name: f"from {source} import {it.name}" for it in node.names}
        elif isinstance(node, ast.Import):
            lines |= {it.asname or it.name: f"import {it.name}" + (f" as {it.asname}" if it.asname else "") for it in node.names}
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            lines[node.name] = f"from .{name} import {node.name}"
        elif isinstance(node, ast.Assign):
            lines |= {it.id: f"from .{name} import {it.id}" for it in node.targets if isinstance(it, ast.Name)}
    return lines


class Maker:
    def __init__(self) -> None:
        self.known: dict[str, str] = {"AsyncIterator": "from collections.abc import AsyncIterator"}
        self.used: set[str] = set()
        #: The plain classes, wherever they are.
        self.plain: dict[str, ast.ClassDef] = {}
        for path in sorted(PACKAGE.glob("*.py")):
            module = parsed(path.stem)
            self.known |= imports(module, path.stem)
            if path.stem != "aio":
                self.plain |= classes(module)

    def made(self) -> str:
        faces = classes(parsed("aio"))
        self.faces = {name for name in faces if not name.startswith("_")}
        parts = [self.face(faces[name], faces) for name in faces if name in self.faces]
        names: dict[str, list[str]] = {}
        for line in {self.known[name] for name in self.used - self.faces if name in self.known}:
            source, _, name = line.partition(" import ")
            names.setdefault(source, []).append(name)
        lines = [f"{source} import {', '.join(sorted(names))}" if names[0] else source for source, names in names.items()]
        head = "# Made by stubs.py.\n\n" + "\n".join(sorted(lines, key=lambda line: (line.startswith("from ."), line)))
        return head + "\n\n" + "\n\n".join(parts) + "\n"

    def face(self, face: ast.ClassDef, faces: dict[str, ast.ClassDef]) -> str:
        decorator = face.decorator_list[0]
        assert isinstance(decorator, ast.Call) and isinstance(decorator.args[0], ast.Attribute)
        sync = self.plain[decorator.args[0].attr]
        plain = {it.arg: ast.literal_eval(it.value) for it in decorator.keywords}.get("plain", ())
        lines, own = [f"class {face.name}:", f"    {ast.unparse(face.body[0])}"], set()
        for function in self.functions(face, faces):
            # What the faces do for each other is no business of others, but that of the store.
            if not function.name.startswith("_") or function.name.startswith("__") or face.name == "Store":
                own.add(function.name)
                lines.append(self.function(function, isinstance(function, ast.AsyncFunctionDef)))
        if "sync" not in own:
            self.used.add("_sync")
            lines.insert(2, f"    sync: _sync.{sync.name}" if sync.name != "Resumed" else "    sync: Any")
            self.used |= {"Line", "Pool"}
            lines.insert(3, "    _store: Store\n    _line: Line | Pool")
        if face.name == "Store":
            self.used |= {"_sync", "Pool"}
            lines.insert(2, "    _opened: _sync.Store | None\n    _pool: Pool")
        for function in self.functions(sync, self.plain):
            name = ITERATORS.get(function.name, function.name)
            if (name.startswith("_") and name not in ITERATORS.values()) or name in own:
                continue
            if any(isinstance(it, ast.Name) and it.id == "property" for it in function.decorator_list) or name in plain:
                lines.append(self.function(function, False))
            elif name in ITERATORS.values():
                lines.append(self.function(function, False, name))
            else:
                lines.append(self.function(function, True))
        for field in sync.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.value is None:
                if not field.target.id.startswith("_"):
                    self.use(field.annotation)
                    lines.append(f"    @property\n    def {field.target.id}(self) -> {ast.unparse(field.annotation)}: ...")
        return "\n".join(lines)

    def functions(self, of: ast.ClassDef, all: dict[str, ast.ClassDef]) -> Iterator[Function]:
        """Yields the functions of a class and of its bases; of an overloaded one only the overloads."""
        for base in of.bases:
            if isinstance(base, ast.Name) and base.id in all and base.id != "_Face":
                yield from self.functions(all[base.id], all)
        functions = [it for it in of.body if isinstance(it, (ast.FunctionDef, ast.AsyncFunctionDef))]
        overloaded = {it.name for it in functions if self.is_overload(it)}
        yield from (it for it in functions if it.name not in overloaded or self.is_overload(it))

    @staticmethod
    def is_overload(function: Function) -> bool:
        return any(isinstance(it, ast.Name) and it.id == "overload" for it in function.decorator_list)

    def use(self, node: ast.AST) -> None:
        self.used |= {it.id for it in ast.walk(node) if isinstance(it, ast.Name)}

    def function(self, function: Function, is_async: bool, name: str | None = None) -> str:
        for node in [function.args, function.returns, *function.decorator_list]:
            if node is not None:
                self.use(node)
        returns = ast.unparse(function.returns) if function.returns else "None"
        if name is not None and returns.startswith("Iterator["):
            self.used.add("AsyncIterator")
            returns = "Async" + returns
        lines = [f"    @{ast.unparse(it)}" for it in function.decorator_list]
        begin = "async def" if is_async else "def"
        lines.append(f"    {begin} {name or function.name}({ast.unparse(function.args)}) -> {returns}:")
        doc = ast.get_docstring(function)
        if doc is None:
            lines[-1] += " ..."
        else:
            paragraphs = [it for it in doc.split("\n\n") if not it.startswith(">>>")]
            doc = "\n\n".join(paragraphs).replace("\n", "\n        ").replace("\n        \n", "\n\n")
            end = "\n        " if "\n" in doc else ""
            lines.append(f'        """{doc}{end}"""')
        return "\n".join(lines)


if __name__ == "__main__":
    STUB.write_text(Maker().made())
