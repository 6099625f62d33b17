"""The state file read while others write it, in threads, in children, after it was replaced."""

import _ctypes
import ctypes
import os
import shutil
import struct
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import hatch_build
from hami_mock.views.driver import layout
from tests.driver.state_file import StateFile, card_uuid, live

DRIVER_NOT_LOADED, VERSION_MISMATCH = 9, 18

# Writes two states in turn, as fast as it can; all numbers of each are the same.
WRITER = """
import sys
from pathlib import Path
from hami_mock.views.driver.layout import LIVE
from tests.driver.state_file import StateFile
state = StateFile(Path(sys.argv[1]), cards=1)
fields = "gpu", "memory", "memory_used", "memory_free", "memory_reserved", "compute_mode"
states = [
    LIVE.pack({
        **dict.fromkeys(fields, n), "process_count": 64,
        "processes": [{"pid": n, "memory": n, "type": 1} for _ in range(64)],
    })
    for n in (1, 2)
]
state.set_packed(0, states[0])
print("ready", flush=True)
while True:
    for each in states:
        state.set_packed(0, each)
"""


def test_nothing_is_torn(
    client: ModuleType, library: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(layout.STATE_VARIABLE, str(tmp_path))
    writer = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        client.nvmlInit()
        card = client.nvmlDeviceGetHandleByIndex(0)
        processes, count = ctypes.create_string_buffer(64 * 24), ctypes.c_uint()
        whole = [struct.pack("<I4xQII", n, n, 0, 0) * 64 for n in (1, 2)]
        seen = Counter[int]()
        while min(seen[0], seen[1]) < 20_000:
            count.value = 64
            found = library.nvmlDeviceGetComputeRunningProcesses_v3(
                card, ctypes.byref(count), processes
            )
            assert found == 0
            torn = processes.raw not in whole
            assert not torn
            seen[whole.index(processes.raw)] += 1
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.communicate()


def test_a_writer_that_died_blocks_nobody(nvml: ModuleType, state: StateFile) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    state.leave_half_written(0)
    assert nvml.nvmlDeviceGetPowerUsage(card) == 250_000
    state.set(0, live(0) | {"power": 1})
    assert nvml.nvmlDeviceGetPowerUsage(card) == 1


def test_a_child_has_it_too(nvml: ModuleType, state: StateFile) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(2)
    child = os.fork()
    if child == 0:
        state.set(2, live(2) | {"power": 77})
        nvml.nvmlInit()
        os._exit(nvml.nvmlDeviceGetPowerUsage(card))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 77
    assert nvml.nvmlDeviceGetPowerUsage(card) == 77


def test_a_child_of_threads_never_waits_for_them(
    client: ModuleType, library: ctypes.CDLL, state: StateFile
) -> None:
    busy = True

    def work() -> None:
        while busy:
            library.nvmlInit_v2()
            library.nvmlShutdown()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            child = os.fork()
            if child == 0:
                os._exit(library.nvmlInit_v2() + library.nvmlShutdown())
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        busy = False
        for thread in threads:
            thread.join()


def test_threads(nvml: ModuleType, library: ctypes.CDLL) -> None:
    wrong: list[object] = []

    def work(index: int) -> None:
        power, device = ctypes.c_uint(), ctypes.c_void_p()
        for _ in range(3000):
            results = [
                library.nvmlInit_v2(),
                library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)),
                library.nvmlDeviceGetPowerUsage(device, ctypes.byref(power)),
                library.nvmlShutdown(),
            ]
            if any(results) or power.value != 250_000 + index:
                wrong.append((results, power.value))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_init_is_counted(client: ModuleType, library: ctypes.CDLL, state: StateFile) -> None:
    assert library.nvmlInit() == library.nvmlInit_v2() == library.nvmlInitWithFlags(1) == 0
    count = ctypes.c_uint()
    for _ in range(3):
        assert library.nvmlDeviceGetCount(ctypes.byref(count)) == 0
        assert library.nvmlShutdown() == 0
    assert library.nvmlDeviceGetCount(ctypes.byref(count)) == 1
    assert library.nvmlShutdown() == 1


def test_it_is_closed_and_opened_again(
    library_path: Path, state: StateFile, tmp_path: Path
) -> None:
    own = tmp_path / "own.so"
    shutil.copy(library_path, own)
    for _ in range(20):
        library = ctypes.CDLL(str(own))
        assert library.nvmlInit_v2() == 0
        count = ctypes.c_uint()
        assert library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
        assert count.value == 8
        assert library.nvmlShutdown() == 0
        _ctypes.dlclose(library._handle)
    mapped = Path("/proc/self/maps").read_text()
    assert str(own) not in mapped
    assert str(state.folder) not in mapped


# What it prints is written after all libraries have been told that the program ends.
LATE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
static void *device;
static int (*power)(void *, unsigned *);
static ssize_t look(void *nothing, const char *text, size_t size)
{
    unsigned milliwatts = 0;
    if (power(device, &milliwatts) != 0 || milliwatts != 250001)
        _exit(3);
    return (ssize_t)size;
}
int main(int count, char **arguments)
{
    void *library = dlopen(arguments[count - 1], RTLD_NOW);
    int (*init)(void) = dlsym(library, "nvmlInit_v2");
    int (*find)(unsigned, void **) = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    power = dlsym(library, "nvmlDeviceGetPowerUsage");
    if (init() || find(1, &device))
        return 1;
    FILE *late = fopencookie(NULL, "w", (cookie_io_functions_t){.write = look});
    return fputs("the end", late) < 0;
}
"""


def test_threads_may_still_look_while_the_program_ends(
    library_path: Path, state: StateFile, tmp_path: Path
) -> None:
    (source := tmp_path / "late.c").write_text(LATE)
    command = hatch_build.own_compiler()
    assert command is not None, "the library was compiled"
    subprocess.run([*command, "-o", tmp_path / "late", source, "-ldl"], check=True)
    assert subprocess.run([tmp_path / "late", library_path], check=False).returncode == 0


def test_another_file_takes_its_place(nvml: ModuleType, state: StateFile) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(1)
    other = state.replaced(cards=3)
    assert nvml.nvmlDeviceGetCount() == 3
    other.set(1, live(1) | {"power": 5})
    assert nvml.nvmlDeviceGetPowerUsage(card) == 5
    last = other.replaced(cards=128, generation=3)
    assert nvml.nvmlDeviceGetCount() == 128
    handle = nvml.nvmlDeviceGetHandleByIndex(127)
    assert nvml.nvmlDeviceGetPowerUsage(handle) == 250_127
    smaller = last.replaced(cards=2, generation=4)
    with pytest.raises(nvml.NVMLError_GpuIsLost):
        nvml.nvmlDeviceGetPowerUsage(handle)
    for each in (other, last, smaller):
        each.close()


def test_a_handle_stays_with_its_card(nvml: ModuleType, state: StateFile) -> None:
    first, fourth = (nvml.nvmlDeviceGetHandleByIndex(index) for index in (0, 3))
    events = nvml.nvmlEventSetCreate()
    nvml.nvmlDeviceRegisterEvents(fourth, 8, events)
    other = state.replaced(cards=4, first=2)
    assert nvml.nvmlDeviceGetUUID(fourth) == card_uuid(3)
    assert nvml.nvmlDeviceGetIndex(fourth) == 1
    assert nvml.nvmlDeviceGetPowerUsage(fourth) == 250_003
    with pytest.raises(nvml.NVMLError_GpuIsLost):
        nvml.nvmlDeviceGetUUID(first)
    # Card 2 is the first of this file, and its handle isn't the one that went.
    now_first = nvml.nvmlDeviceGetHandleByIndex(0)
    assert nvml.nvmlDeviceGetUUID(now_first) == card_uuid(2)
    other.xid(0, 13)
    other.xid(1, 79)
    told = nvml.nvmlEventSetWait_v2(events, 0)
    assert (told.eventData, nvml.nvmlDeviceGetUUID(told.device)) == (79, card_uuid(3))
    last = other.replaced(cards=8, generation=3)
    assert [nvml.nvmlDeviceGetIndex(each) for each in (first, now_first, fourth)] == [0, 2, 3]
    for each in (other, last):
        each.close()


def test_handles_of_cards_that_are_gone_are_used_again(nvml: ModuleType, state: StateFile) -> None:
    current = state.replaced(cards=128, generation=2)
    for generation in range(3, 6):
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(128)]
        found = [nvml.nvmlDeviceGetPowerUsage(handle) for handle in handles]
        start = (generation - 3) * 100
        assert found == [250_000 + number for number in range(start, start + 128)]
        other = current.replaced(cards=128, generation=generation, first=start + 100)
        current.close()
        current = other
    current.close()


def test_others_go_on_while_it_is_replaced(
    nvml: ModuleType, library: ctypes.CDLL, state: StateFile
) -> None:
    busy, wrong = True, list[object]()

    def work() -> None:
        device, power = ctypes.c_void_p(), ctypes.c_uint()
        while busy:
            results = [
                library.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(device)),
                library.nvmlDeviceGetPowerUsage(device, ctypes.byref(power)),
            ]
            if any(results) or power.value != 250_001:
                wrong.append((results, power.value))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    current = state
    for generation in range(2, 60):
        other = current.replaced(cards=2 + generation % 7, generation=generation)
        if current is not state:
            current.close()
        current = other
    busy = False
    for thread in threads:
        thread.join()
    assert nvml.nvmlDeviceGetCount() == 2 + 59 % 7
    current.close()
    assert wrong == []


# Asks a card for its UUID and its number, in two threads, until its input ends.
ASKER = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static void *device;
static int (*name)(void *, char *, unsigned), (*number)(void *, unsigned *);
static char known[96];
static unsigned known_number, wrong;
static volatile int over;
static void *ask(void *nothing)
{
    char found[96];
    unsigned found_number;
    while (!over)
        if (name(device, found, sizeof found) || strcmp(found, known) ||
            number(device, &found_number) || found_number != known_number)
            __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
    return nothing;
}
int main(int count, char **arguments)
{
    void *library = dlopen(arguments[count - 1], RTLD_NOW);
    int (*init)(void) = dlsym(library, "nvmlInit_v2");
    int (*find)(unsigned, void **) = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    name = dlsym(library, "nvmlDeviceGetUUID");
    number = dlsym(library, "nvmlDeviceGetPowerUsage");
    if (init() || find(3, &device) || name(device, known, sizeof known) ||
        number(device, &known_number))
        return 1;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, ask, NULL);
    puts("ready");
    fflush(stdout);
    getchar();
    over = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return wrong != 0;
}
"""


def test_no_getter_says_what_another_card_is(
    library_path: Path, state: StateFile, tmp_path: Path
) -> None:
    """Whose number in the file is the one that its own card had in the file before."""
    (source := tmp_path / "asker.c").write_text(ASKER)
    command = hatch_build.own_compiler()
    assert command is not None, "the library was compiled"
    program = tmp_path / "asker"
    subprocess.run([*command, "-o", program, source, "-ldl", "-lpthread"], check=True)
    with subprocess.Popen(
        [program, library_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as asker:
        assert asker.stdout is not None
        assert asker.stdout.readline() == b"ready\n"
        current = state
        for generation in range(2, 300):
            other = current.replaced(cards=8, generation=generation, first=generation % 4)
            if current is not state:
                current.close()
            current = other
        asker.communicate(b"\n")
    current.close()
    assert asker.returncode == 0


def test_a_new_file_that_cannot_be_read(nvml: ModuleType, state: StateFile) -> None:
    """The last state stays, also where the file that has moved is the one that is found."""
    card = nvml.nvmlDeviceGetHandleByIndex(1)
    with state.path.open("r+b") as file:
        file.seek(layout.HEADER.offset("moved"))
        file.write(b"\1")
    assert (nvml.nvmlDeviceGetUUID(card), nvml.nvmlDeviceGetCount()) == (card_uuid(1), 8)
    state.path.rename(state.path.with_suffix(".gone"))
    assert nvml.nvmlDeviceGetUUID(card) == card_uuid(1)
    assert nvml.nvmlDeviceGetPowerUsage(card) == 250_001
    state.path.write_bytes(b"of another version")
    assert nvml.nvmlDeviceGetPowerUsage(nvml.nvmlDeviceGetHandleByIndex(2)) == 250_002


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        ({"magic": 1}, DRIVER_NOT_LOADED),
        ({"version": layout.VERSION + 1}, VERSION_MISMATCH),
        ({"card_size": 8}, VERSION_MISMATCH),
        ({"card_count": 9}, DRIVER_NOT_LOADED),
        ({"card_count": 0xFFFFFFFF}, DRIVER_NOT_LOADED),
        ({"file_size": 0}, DRIVER_NOT_LOADED),
    ],
)
def test_a_file_of_others_is_not_loaded(
    library: ctypes.CDLL, state: StateFile, damage: dict[str, int], expected: int
) -> None:
    ((name, value),) = damage.items()
    field = layout.HEADER.fields[name]
    with state.path.open("r+b") as file:
        file.seek(field.offset)
        file.write(value.to_bytes(field.field.size, "little"))
    assert library.nvmlInit_v2() == expected


def test_a_short_file_is_not_loaded(library: ctypes.CDLL, state: StateFile) -> None:
    os.truncate(state.path, state.path.stat().st_size - 1)
    assert library.nvmlInit_v2() == DRIVER_NOT_LOADED


def test_no_file(library: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(layout.STATE_VARIABLE, str(tmp_path))
    assert library.nvmlInit_v2() == DRIVER_NOT_LOADED


def test_it_finds_the_folder_beside_itself(
    library_path: Path, state: StateFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(layout.STATE_VARIABLE)
    root = tmp_path / "a driver's root"
    (root / "lib64").mkdir(parents=True)
    real = root / "lib64" / "libnvidia-ml.so.580.65.06"
    shutil.copy(library_path, real)
    link = root / "lib64" / "libnvidia-ml.so.1"
    link.symlink_to(real.name)
    shutil.copytree(state.folder, root / "state")
    code = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).nvmlInit_v2())"
    assert subprocess.run([sys.executable, "-c", code, link], check=False).returncode == 0
    shutil.rmtree(root / "state")
    found = subprocess.run([sys.executable, "-c", code, link], check=False).returncode
    assert found == DRIVER_NOT_LOADED
