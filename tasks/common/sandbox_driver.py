# Runs inside the sandbox: picks the program out of a reply, executes it and its tests, and tells the parent.
#
# Descriptor 4 holds the job (JSON), descriptor 3 is a socket to the parent that keeps messages apart. The parent
# believes a pass only when it gets back the secret that it sent; everything else said here can only make an item fail.
# Rules are those of specs/scoring.md, sections 5.2 and 5.3.
import ast
import importlib.util
import json
import posix
import resource
import sys
import types

CHANNEL, JOB = 3, 4
MOST_COMPILES = 2000  # of one reply; a reply that needs more has no program
LONGEST_PROGRAM = 40_000  # characters that are reported; the socket's buffer bounds a message
LONGEST_DETAIL = 500
OUT_OF_MEMORY = b'{"outcome": "memory", "detail": "MemoryError"}'  # made while there is memory
ASSERTION = AssertionError  # a program may give the name another meaning
# What executes program and tests. The texts in it become constants of its code, so that no name or variable leads to
# the secret, to the tests or to the functions used: the secret waits on this frame's stack. See seal().
SEALED = """
"write"("channel", ("read"("channel", 64), "run"("preamble", "space"), "run"("program", "space"), "run"("tests", "space"))[0])
""".strip()


def say(**message):
    posix.write(CHANNEL, json.dumps(message, ensure_ascii=False).encode("utf-8", "replace"))


def read_job():
    parts = []
    while part := posix.read(JOB, 1 << 20):
        parts.append(part)
    posix.close(JOB)
    return json.loads(b"".join(parts))


class Compiler:
    """Python's own compile step, which sees more than a parser: `return` outside a function, say."""

    def __init__(self):
        self.left = MOST_COMPILES

    def error_line(self, text):
        """None when `text` compiles, else the line at fault, from 1."""
        if self.left == 0:
            return 1
        self.left -= 1
        try:
            code_of(text, "<program>")
            return None
        except SyntaxError as error:
            return error.lineno or 1
        except (ValueError, OverflowError, MemoryError, RecursionError):  # NUL bytes, too deep, too long
            return 1

    def compiles(self, text):
        return self.error_line(text) is None

    def longest_run(self, lines, first):
        """End of the longest run of `lines` from `first` on that compiles; `first` when there is none.

        No run that holds the line at fault compiles, so each attempt ends before it.
        """
        end = len(lines)
        while end > first:
            line = self.error_line("\n".join(lines[first:end]) + "\n")
            if line is None:
                return end
            end = min(first + line - 1, end - 1)
        return first


def code_of(text, name):
    return compile(text, name, "exec", dont_inherit=True)


def defines(line, name):
    """Whether a line at the left margin binds `name` by def or by assignment."""
    if line.startswith("def ") and line[4:].lstrip().startswith(name):
        return line[4:].lstrip()[len(name):].lstrip().startswith("(")
    rest = line[len(name):].lstrip() if line.startswith(name) else ""
    return rest.startswith("=") and not rest.startswith("==")


def may_start(line):
    """Import, decorator, class, def or assignment at the left margin."""
    if line.startswith(("import ", "from ", "@", "class ", "def ", "async def ")):
        return True
    name, equals, value = line.partition("=")
    return bool(equals) and not value.startswith("=") and name.strip().isidentifier() and not line[0].isspace()


def run_with_definition(compiler, text, name):
    """The longest run of lines that compiles and holds the definition, or None."""
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if defines(line, name)]
    best = None
    start, last = 0, places[-1] if places else -1
    while start <= last:
        if not may_start(lines[start]):
            start += 1
            continue
        if best is not None and len(lines) - start <= best[1] - best[0]:
            break  # nothing longer can follow
        end = compiler.longest_run(lines, start)
        if any(start <= place < end for place in places) and (best is None or end - start > best[1] - best[0]):
            best = (start, end)
        start = max(start + 1, end)  # what begins inside a run ends where it ends
    return None if best is None else "\n".join(lines[best[0]:best[1]]) + "\n"


def is_kept(node):
    """Imports, definitions and assignments, also behind `try` and `if`; not what only shows or tests them."""
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return not any(isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "input"
                       for part in ast.walk(node))
    if isinstance(node, ast.Try):
        return all(map(is_kept, [*node.body, *node.orelse, *node.finalbody, *(s for h in node.handlers for s in h.body)]))
    if isinstance(node, ast.If):
        named = any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))
        return not named and all(map(is_kept, [*node.body, *node.orelse]))
    return isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass))


def without_demonstration(text):
    """`text` without the statements at top level that only show or test what it defines."""
    tree = ast.parse(text)
    dropped = [node for node in tree.body if not is_kept(node)]
    if not dropped:
        return text
    gone = {line for node in dropped for line in range(node.lineno, node.end_lineno + 1)}
    kept = [node for node in tree.body if is_kept(node)]
    if any(node.lineno in gone or node.end_lineno in gone for node in kept):  # a semicolon between the two
        return ast.unparse(ast.Module(kept, []))
    # Python's lines end at "\n" only here: a form feed or U+2028 ends none.
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in gone)


def body_of(compiler, job):
    """The prompt with the first body that fits, or None. A body is tried as it is, then with its indentation mended."""
    for body in job["bodies"]:
        if not body.strip():
            continue
        lines = body.split("\n")
        deeper = "\n".join("    " + line if line.strip() else line for line in lines)
        mended = "\n".join(["    " + lines[0].lstrip(), *lines[1:]])
        for variant in (body, deeper, mended):
            if compiler.compiles(job["prompt"] + variant + "\n"):
                return job["prompt"] + variant + "\n"
    return None


def choose(job):
    """Rule, preamble and program of a job; without a program the rule is the outcome."""
    compiler = Compiler()
    if job["program"] is not None:
        good = compiler.compiles(job["program"])
        return ("program", "", job["program"]) if good else ("syntax", "", None)
    name = job["entry_point"]
    found = None
    for text in job["blocks"]:
        if compiler.compiles(text):
            found = ("fence", text)
            break
    if found is None and job["blocks"]:
        found = ("fence_run", run_with_definition(compiler, job["blocks"][0], name))
    if (found is None or found[1] is None) and job["outside"] is not None:
        found = ("text_run", run_with_definition(compiler, job["outside"], name))
    if found is not None and found[1] is not None:
        return found[0], job["preamble"], without_demonstration(found[1])
    body = body_of(compiler, job)
    if body is not None:
        return "body", "", body
    return ("syntax" if job["blocks"] or job["outside"] is not None else "no_code"), "", None


def describe(error, tests):
    """What went wrong and in which line of the tests, as text; the program under test owns the error."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<tests>":
            lines = tests.split("\n")
            if 0 < trace.tb_lineno <= len(lines):
                place = f" at: {lines[trace.tb_lineno - 1].strip()}"
        trace = trace.tb_next
    try:
        text = str(error)
    except BaseException as second:  # an error that cannot be shown
        text = type(second).__name__
    return f"{type(error).__name__}: {text[:LONGEST_DETAIL]}{place[:LONGEST_DETAIL]}"


def seal(**parts):
    code = compile(SEALED, "<sealed>", "eval")
    return code.replace(co_consts=tuple(parts.get(constant, constant) for constant in code.co_consts))


def forbid_tracing(event, _):
    """A tracer could jump over the statements of the tests."""
    if event in ("sys.settrace", "sys.setprofile", "sys.monitoring.register_callback"):
        raise PermissionError(f"{event} is not allowed here")


def execute(preamble, program, tests, source):
    # As a script would run, so that dataclasses and pickle find their module.
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    space = module.__dict__
    sealed = seal(write=posix.write, read=posix.read, run=exec, channel=CHANNEL, preamble=preamble, program=program,
                  tests=tests, space=space)
    sys.addaudithook(forbid_tracing)
    try:
        eval(sealed, {})
    except MemoryError:
        posix.write(CHANNEL, OUT_OF_MEMORY)
    except BaseException as error:
        say(outcome="assertion" if isinstance(error, ASSERTION) else "exception", detail=describe(error, source))
    posix._exit(0)


def main():
    job = read_job()
    resource.setrlimit(resource.RLIMIT_NPROC, (job["processes"], job["processes"]))
    missing = [name for name in job["modules"] if importlib.util.find_spec(name) is None]
    say(ready=True, python=sys.version.split()[0], missing=missing)
    try:
        preamble, tests = code_of(job["preamble"], "<prompt>"), code_of(job["tests"], "<tests>")
    except (SyntaxError, ValueError) as error:
        say(outcome="runner_error", detail=f"the prompt or the tests do not compile: {error}"[:LONGEST_DETAIL])
        return
    try:
        rule, before, text = choose(job)
        program = None if text is None else code_of(text, "<program>")
    except Exception:  # whatever a reply does to the parser is the reply's fault
        rule, program = "syntax", None
    if program is None:
        say(outcome=rule)
        return
    if not before:
        preamble = code_of("", "<prompt>")
    say(rule=rule, program=(before + text)[:LONGEST_PROGRAM])
    execute(preamble, program, tests, job["tests"])


main()
