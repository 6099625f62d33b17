"""Who asks for a card, or waits for its events, just when another file comes: the card is it."""

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


# events.c alone: the second file is mapped while its event is read, its cards not yet numbered.
WAITER = r"""
#include "events.c"
#include <string.h>
static struct header headers[2] = {{.card_count = 2, .event_sequence = 0},
                                   {.card_count = 2, .event_sequence = 1}};
static struct identity cards[2] = {{.uuid = "GPU-a"}, {.uuid = "GPU-b"}};
static char handles[2];
static uint mapped, numbered, epoch, comes;
bool state_ready(void) { return true; }
void state_follow(void)
{
    if (epoch % 2)
        epoch++;
    numbered = mapped;
}
uint32_t state_file(void) { return state_follow(), epoch; }
bool state_is_still(uint32_t file) { return file == epoch; }
const struct header *state_header(void)
{
    if (comes && !--comes) {
        mapped = 1;
        epoch++;
    }
    return &headers[mapped];
}
/* In the second file, the cards have changed places. */
const struct identity *state_identity(uint card) { return &cards[card ^ mapped]; }
uint handle_number(uint card) { return card ^ numbered; }
nvmlDevice_t device_handle(uint card) { return (nvmlDevice_t)(handles + handle_number(card)); }
nvmlReturn_t place_of(nvmlDevice_t device, struct place *place)
{
    *place = (struct place){.card = (uint)((char *)device - handles)};
    return NVML_SUCCESS;
}
nvmlReturn_t card_of(nvmlDevice_t device, uint *card) { return (void)device, *card = 0; }
nvmlReturn_t live_copy(uint card, size_t offset, void *to, size_t size)
{
    return memset(to, (int)(card * offset * 0), size) ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}
uint64_t sys_monotonic(void) { return 0; }
long sys_wait(const uint32_t *word, uint32_t value, uint64_t time, bool shared)
{
    return (long)(*word * value * time * shared);
}
size_t text_copy(char *to, size_t size, const char *from)
{
    strncpy(to, from, size);
    return strlen(to);
}
int main(int count, char **arguments)
{
    nvmlEventSet_t events;
    nvmlEventData_v2_t data = {0};
    uint asked = (uint)(arguments[count - 1][0] - '0');
    headers[1].events[0] = (struct event){.sequence = 1, .type = 8, .card = 0}; /* of GPU-b */
    nvmlEventSetCreate(&events);
    nvmlDeviceRegisterEvents((nvmlDevice_t)(handles + asked), 8, events);
    comes = 2; /* after the word to sleep on, and before the events */
    nvmlReturn_t result = nvmlEventSetWait_v2(events, &data, 0);
    return result ? (int)result : 100 + (int)((char *)data.first.device - handles);
}
"""
TIMEOUT, THE_CARD_B = 10, 101


def run_with_fakes(source: str, folder: Path, *arguments: str) -> int:
    """Return the exit code of a program that has a part of native/ in it."""
    command = hatch_build.own_compiler()
    if command is None:
        pytest.skip("no C compiler")
    (program := folder / "program.c").write_text(source)
    flags = ["-std=gnu11", "-fvisibility=hidden", f"-I{hatch_build.ROOT / 'native'}"]
    subprocess.run([*command, *flags, "-o", folder / "program", program], check=True)
    return subprocess.run([folder / "program", *arguments], check=False).returncode


def test_a_handle_is_the_cards_that_was_asked_for(tmp_path: Path) -> None:
    # It was the first card, and is the second one of the file that came.
    assert run_with_fakes(PROGRAM, tmp_path) == 1


@pytest.mark.parametrize(("waits_for", "told"), [("0", TIMEOUT), ("1", THE_CARD_B)])
def test_an_event_is_the_cards_that_it_happened_to(
    tmp_path: Path, waits_for: str, told: int
) -> None:
    assert run_with_fakes(WAITER, tmp_path, waits_for) == told
