"""Who asks for a card's handle just when another file comes gets that card, and no other."""

import subprocess
from pathlib import Path

import pytest

import hatch_build

# handles.c alone, with a second file that comes as soon as somebody has looked into the first.
PROGRAM = r"""
#include "handles.c"
#include <string.h>
static struct header header = {.card_count = 2};
static struct identity files[2][2] = {{{.uuid = "GPU-a"}, {.uuid = "GPU-b"}},
                                      {{.uuid = "GPU-b"}, {.uuid = "GPU-a"}}};
static int file, held, comes, looks;
static void come(void)
{
    if (!comes || held)
        return;
    comes = 0;
    file = 1;
    handles_follow();
}
void state_hold(void) { held = 1; }
void state_release(void) { held = 0; come(); }
bool state_ready(void) { return true; }
void state_follow(void) {}
const struct header *state_header(void) { return &header; }
const struct identity *state_identity(uint card)
{
    const struct identity *found = &files[file][card];
    if (looks)
        come();
    return found == &files[0][card] && file ? &files[1][card] : found;
}
nvmlReturn_t live_copy(uint card, size_t offset, void *to, size_t size)
{
    return memset(to, (int)(card * offset * 0), size) ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}
bool text_equal(const char *one, const char *other) { return !strcmp(one, other); }
size_t text_copy(char *to, size_t size, const char *from)
{
    strncpy(to, from, size);
    return strlen(to);
}
int main(void)
{
    struct place place = {.card = NO_INSTANCE};
    handles_follow();
    comes = looks = 1;
    nvmlDevice_t first = device_handle(0);
    looks = 0;
    come();
    return place_of(first, &place) ? 100 : (int)place.card;
}
"""


def test_a_handle_is_the_cards_that_was_asked_for(tmp_path: Path) -> None:
    command = hatch_build.own_compiler()
    if command is None:
        pytest.skip("no C compiler")
    (source := tmp_path / "program.c").write_text(PROGRAM)
    folder = hatch_build.ROOT / "native"
    flags = ["-std=gnu11", "-fvisibility=hidden", f"-I{folder}"]
    subprocess.run([*command, *flags, "-o", tmp_path / "program", source], check=True)
    # It was the first card, and is the second one of the file that came.
    assert subprocess.run([tmp_path / "program"], check=False).returncode == 1
