export PYTHONDONTWRITEBYTECODE=1
find_program='from haversack._program import Program; print(Program.find(home=None, program=None, agent=None, session=None, environment=None).path)'
wheel=$(ls /given/haversack-*.whl)
python3 -m venv /tmp/venv
find /tmp/venv ! -name '*.pyc' ! -type d | sort >/tmp/before.txt
/tmp/venv/bin/pip install --quiet --no-index --disable-pip-version-check "$wheel"
/tmp/venv/bin/python -c 'import haversack'
# An environment that is not activated.
test "$(/tmp/venv/bin/python -c "$find_program")" = /tmp/venv/bin/haversack
/tmp/venv/bin/python -c 'import haversack; haversack.HaversackMemoryTool' 2>/tmp/why.txt && exit 1
grep -q 'pip install "haversack\[anthropic\]"' /tmp/why.txt
haversack=/tmp/venv/bin/haversack
test -s /tmp/venv/share/haversack/completions/haversack.ps1
. /given/use.sh
/tmp/venv/bin/pip uninstall --quiet --yes --disable-pip-version-check haversack
find /tmp/venv ! -name '*.pyc' ! -type d | sort >/tmp/after.txt
diff /tmp/before.txt /tmp/after.txt
# A directory instead of an environment.
/tmp/venv/bin/pip install --quiet --no-index --disable-pip-version-check --target /tmp/target "$wheel"
test "$(PYTHONPATH=/tmp/target python3 -c "$find_program")" = /tmp/target/bin/haversack
# The package manager that runs it without installing it.
if [ -x /given/uv ]; then
    export UV_CACHE_DIR=/tmp/uv UV_TOOL_DIR=/tmp/uv-tools UV_PYTHON_INSTALL_DIR=/tmp/uv-python
    test "$(/given/uv tool run --offline --from "$wheel" haversack version)" = "$(/tmp/target/bin/haversack version)"
    echo 'uvx: passed'
fi
if PIP_NO_INDEX=1 PIPX_HOME=/tmp/pipx PIPX_BIN_DIR=/tmp/pipx-bin pipx run --spec "$wheel" haversack version >/tmp/pipx.txt 2>&1; then
    grep -q "$(/tmp/target/bin/haversack version)" /tmp/pipx.txt
    echo 'pipx run: passed'
else
    tail -n 2 /tmp/pipx.txt
    echo 'pipx run: skipped, it wants the registry for its own packages'
fi
rm -rf /home/me/.cache /home/me/.local
