#!/bin/sh
# Writes requirements/*.txt: exact versions for every supported Python and system, and nothing about where they
# came from. Called by `make lock`.
set -eu

pin() {
    output=$1
    shift
    uv pip compile --quiet --upgrade --universal --python-version 3.11 \
        --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
        pyproject.toml --output-file "$output" "$@"
    sed -i.bak "1i\\
# Made by 'make lock' from pyproject.toml; do not edit.
" "$output"
    rm -f "$output.bak"
}

pin requirements/dev.txt --extra spark --extra dev
pin requirements/java.txt --extra java --constraints requirements/dev.txt
pin requirements/bench.txt --extra bench --constraints requirements/dev.txt
