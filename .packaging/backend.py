#!/usr/bin/env python3
"""Make wheels and the sources for pip, with the standard library alone.

    backend.py wheel MUSL FOLDER ARCH   a wheel of the static programs in MUSL/ace
    backend.py sdist FOLDER             the sources for pip

In those sources, pip calls the functions of PEP 517 below, which build the programs
with make and the machine's libraries.  A wheel is a zip archive with a list of its
files.  The same programs give the same bytes.
"""
import base64
import glob
import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def slurp(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


version = re.search(r'VERSION "(.*)"',
                    slurp(top, "lib/base/version.h").decode()).group(1)
info = f"ace_shards-{version}.dist-info"
# licenses of libraries in static programs; liblzma of xz 5.4 is in the public domain
STATIC = ("ISC AND BSD-2-Clause AND BSD-3-Clause AND MIT AND Zlib AND bzip2-1.0.6"
          " AND LicenseRef-Public-Domain")


def metadata(license, files):
    return f"""Metadata-Version: 2.4
Name: ace-shards
Version: {version}
Summary: Gradients made small and sent through Unix pipes
License-Expression: {license}
{"".join(f"License-File: {f}" + chr(10) for f in files)}\
Keywords: gradient compression,distributed training,error feedback
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Requires-Python: >=3.8
Provides-Extra: torch
Requires-Dist: torch; extra == "torch"
Description-Content-Type: text/markdown

""".encode() + slurp(top, "README.md")


def make_wheel(programs, tag, to, licenses, strip):
    """Write a wheel of the programs in a folder; return its name; licenses: of linked libraries."""
    data = f"ace_shards-{version}.data"
    files = []	# name in the archive, bytes, mode

    def add(name, content, mode=0o644):
        files.append((name, content, mode))

    for p in sorted(glob.glob(os.path.join(top, "cmd/*.c"))):
        name = os.path.basename(p)[:-2]
        with tempfile.NamedTemporaryFile() as t:
            subprocess.run([strip, "-o", t.name, os.path.join(programs, name)],
                           check=True)
            add(f"{data}/scripts/{name}", slurp(t.name), 0o755)
    python = os.path.join(top, "examples/pytorch")
    for p in sorted(glob.glob(f"{python}/**/*.py", recursive=True)):
        name = os.path.relpath(p, python)
        if os.path.dirname(name) == "ace_shards":
            add(name, slurp(p))
        add(f"{data}/data/share/ace/pytorch/{name}", slurp(p))
    for p in sorted(glob.glob(os.path.join(top, "man/*.[157]"))):
        add(f"{data}/data/share/man/man{p[-1]}/{os.path.basename(p)}", slurp(p))
    add(f"{data}/data/share/ace/plot.gnuplot",
        slurp(top, "examples/plot.gnuplot"))
    for p in sorted(glob.glob(os.path.join(top, "examples/hosts/*"))):
        add(f"{data}/data/share/ace/hosts/{os.path.basename(p)}", slurp(p),
            0o755 if p.endswith(".sh") else 0o644)
    for p in sorted(glob.glob(os.path.join(top, "examples/trainers/*"))):
        add(f"{data}/data/share/ace/trainers/{os.path.basename(p)}", slurp(p))
    for p in sorted(glob.glob(os.path.join(top, "examples/patches/*"))):
        add(f"{data}/data/share/ace/patches/{os.path.basename(p)}", slurp(p),
            0o755 if p.endswith(".sh") else 0o644)

    add(f"{info}/METADATA", metadata(
        STATIC if licenses else "ISC",
        ["LICENSE"] + (["LICENSES-of-libraries"] if licenses else [])))
    add(f"{info}/WHEEL", f"""Wheel-Version: 1.0
Generator: ace ({version})
Root-Is-Purelib: false
""".encode() + b"".join(f"Tag: py3-none-{t}\n".encode() for t in tag.split(".")))
    add(f"{info}/licenses/LICENSE", slurp(top, "LICENSE"))
    if licenses:
        add(f"{info}/licenses/LICENSES-of-libraries", licenses)

    record = ""
    for name, content, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
        record += f"{name},sha256={digest.rstrip(b'=').decode()},{len(content)}\n"
    add(f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode())

    os.makedirs(to, exist_ok=True)
    out = f"ace_shards-{version}-py3-none-{tag}.whl"
    with zipfile.ZipFile(os.path.join(to, out), "w", zipfile.ZIP_DEFLATED) as z:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name)	# dated 1980
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(entry, content)
    return out


def make_sdist(to):
    """Write the archive of make dist with pip's files first; return its name."""
    os.makedirs(to, exist_ok=True)
    name = f"ace_shards-{version}"
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([os.path.join(top, ".packaging/dist"), work],
                       check=True, stdout=sys.stderr)
        dist = tarfile.open(os.path.join(work, f"ace-{version}.tar.gz"))
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            when = dist.getmembers()[0].mtime
            for path, content in (
                    ("PKG-INFO", metadata("ISC", ["LICENSE"])),
                    ("pyproject.toml", slurp(top, ".packaging/pyproject.toml"))):
                member = tarfile.TarInfo(f"{name}/{path}")
                member.size, member.mtime = len(content), when
                tar.addfile(member, io.BytesIO(content))
            for member in dist.getmembers():
                member.name = re.sub("^[^/]*", name, member.name)
                if not member.name.endswith("/PKG-INFO") and \
                        member.name != f"{name}/pyproject.toml":
                    tar.addfile(member, dist.extractfile(member)
                                if member.isreg() else None)
        dist.close()
    with open(os.path.join(to, f"{name}.tar.gz"), "wb") as f:
        with gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
            z.write(raw.getvalue())
    return f"{name}.tar.gz"


# ---- functions that pip calls ----

def build_sdist(to, settings=None):
    return make_sdist(to)


def build_wheel(to, settings=None, metadata_to=None):
    with tempfile.TemporaryDirectory() as work:
        build = os.path.join(work, "build")
        subprocess.run(["make", "-C", top, "programs", f"BUILD={build}", "DEPS=no"],
                       check=True, stdout=sys.stderr)
        tag = re.sub("[-.]", "_", sysconfig.get_platform())
        return make_wheel(build, tag, to, b"", "strip")


if __name__ == "__main__":
    if sys.argv[1] == "sdist":
        print(os.path.join(sys.argv[2], make_sdist(sys.argv[2])))
    else:
        musl, to, arch = sys.argv[2:]
        # static programs work with every version of libc
        print(os.path.join(to, make_wheel(
            os.path.join(musl, "ace"),
            f"manylinux_2_17_{arch}.musllinux_1_1_{arch}", to,
            slurp(musl, "libs/licenses"), os.path.join(musl, "libs/strip"))))
