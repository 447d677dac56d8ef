#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The programs and the commands in a document are a test: what is printed there is what happens.

  blocks.py sources DOCUMENT FOLDER        write its programs to FOLDER; print their names
  blocks.py run DOCUMENT BIN TOOLS WORK [--programs NAME...]
                                           run its commands in WORK, a folder that is emptied

A program is a ```cpp block whose first line is `// NAME.cpp`, a colon or a bracket behind it or
not. A command is a line `$ ...` of a ```console block; what follows it is what it prints, standard
error too. There `...` stands for any text in a line, and alone for any number of lines. A command
is run by bash; it finds the document's programs, and those that are named, in ./ and the `perdure`
command in PATH. Any exit status will do: what was printed says more.
"""
import pathlib
import re
import shutil
import subprocess
import sys

SECONDS = 60  # of one command
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
NAME = re.compile(r"// (\w+)\.cpp[ :\[\n]")


def blocks(document, kind):
    text = pathlib.Path(document).read_text(encoding="utf-8")
    return [body for language, body in BLOCK.findall(text) if language == kind]


def sources(document, folder):
    """Writes the programs, those that are there already only where they differ; their names."""
    names = []
    for body in blocks(document, "cpp"):
        if not (match := NAME.match(body)):
            continue
        if match[1] in names:
            sys.exit(f"{document}: found two programs {match[1]}.cpp, expected one")
        names.append(match[1])
        path = pathlib.Path(folder) / f"{match[1]}.cpp"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != body:
            path.write_text(body, encoding="utf-8")
    return names


def commands(document):
    """(command, [expected line]) of each console block, in order."""
    found = []
    for body in blocks(document, "console"):
        for line in body.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
            else:
                sys.exit(f"{document}: found '{line}', expected a command, '$ ...'")
    return found


def pattern(lines):
    """A regular expression for the expected lines."""
    out = ""
    for line in lines:
        if line.strip() == "...":
            out += r"(?:.*\n)*?"
        else:
            out += ".*".join(re.escape(part) for part in line.split("...")) + r"\n"
    return out


def run(document, programs, tools, work, *named):
    work = pathlib.Path(work)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    own = [match[1] for match in map(NAME.match, blocks(document, "cpp")) if match]
    for name in [*own, *named]:
        (work / name).symlink_to(pathlib.Path(programs) / name)
    found = commands(document)
    if not found:
        sys.exit(f"{document}: found no command in a ```console block, expected some")
    path = f"{tools}:/usr/local/bin:/usr/bin:/bin"
    environment = {"PATH": path, "HOME": str(work), "LC_ALL": "C"}
    for command, expected in found:
        print(f"$ {command}", flush=True)
        done = subprocess.run(
            ["bash", "-c", command], cwd=work, env=environment, text=True, timeout=SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        print(done.stdout, end="", flush=True)
        if not re.fullmatch(pattern(expected), done.stdout):
            said = "".join(f"    {line}\n" for line in expected)
            sys.exit(f"{document}: found the above (status {done.returncode}), expected\n{said}")
    shutil.rmtree(work)
    print(f"{len(found)} commands of {document} print what it says")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "sources":
        print("\n".join(sources(*sys.argv[2:])))
    elif sys.argv[1:2] == ["run"] and (len(sys.argv) == 6 or sys.argv[6:7] == ["--programs"]):
        run(*sys.argv[2:6], *sys.argv[7:])
    else:
        sys.exit(__doc__)
