/*
 * A client of NVML that measures it: how long opening it, a getter and a whole look take, and what
 * it adds to a process. Prints name and value, parted by a space. First argument: the library.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 1000000 };

struct memory {
    unsigned long long total, free, used;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Bytes in memory of the files whose paths have a part, or of no file's if there is none. */
static double resident(const char *part)
{
    char line[4096];
    double kilobytes, found = 0;
    int counts = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    if (!file)
        exit(1);
    while (fgets(line, sizeof line, file)) {
        if (strchr("0123456789abcdef", line[0]))
            counts = part ? strstr(line, part) != NULL : !strchr(line, '/');
        if (counts && sscanf(line, "Rss: %lf", &kilobytes) == 1)
            found += kilobytes * 1024;
    }
    fclose(file);
    return found;
}

/* The library, the state, and what it has of its own. Not the C library: who opens it has that. */
static double added(double own_before)
{
    return resident("/libnvidia-ml.so") + resident("/cards.bin") + resident(NULL) - own_before;
}

static int threads(void)
{
    char line[256];
    int count = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (!file)
        exit(1);
    while (fgets(line, sizeof line, file))
        sscanf(line, "Threads: %d", &count);
    fclose(file);
    return count;
}

static void *library;

static void *symbol(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "there is no %s\n", name);
        exit(1);
    }
    return found;
}

static void check(int result)
{
    if (result) {
        fprintf(stderr, "NVML said %d\n", result);
        exit(1);
    }
}

static void measure(const char *name, void *device)
{
    /* Larger than what any of the getters here writes. */
    unsigned long long answer[64];
    int (*getter)(void *, void *) = (int (*)(void *, void *))symbol(name);
    check(getter(device, answer));
    double begun = now();
    for (int i = 0; i < CALLS; i++)
        check(getter(device, answer));
    printf("%s %f\n", name, (now() - begun) / CALLS);
}

int main(int count, char **arguments)
{
    static const char *const getters[] = {
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetTotalEnergyConsumption",
    };
    if (count != 2)
        return 2;
    double own = resident(NULL), begun = now();
    library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    double opened = now();
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*init)(void) = (int (*)(void))symbol("nvmlInit_v2");
    check(init());
    double ready = now();
    int (*get_count)(unsigned *) = (int (*)(unsigned *))symbol("nvmlDeviceGetCount_v2");
    int (*get_handle)(unsigned, void **) =
        (int (*)(unsigned, void **))symbol("nvmlDeviceGetHandleByIndex_v2");
    int (*get_memory)(void *, struct memory *) =
        (int (*)(void *, struct memory *))symbol("nvmlDeviceGetMemoryInfo");
    printf("added_ready %f\n", added(own));
    unsigned cards;
    check(get_count(&cards));
    void *device = NULL;
    for (unsigned i = 0; i < cards; i++) {
        struct memory memory;
        check(get_handle(i, &device));
        check(get_memory(device, &memory));
    }
    printf("cards %u\n", cards);
    printf("dlopen %f\n", opened - begun);
    printf("init %f\n", ready - opened);
    printf("added_all %f\n", added(own));
    printf("own_all %f\n", resident(NULL) - own);
    printf("threads %d\n", threads() - 1);
    for (size_t i = 0; i < sizeof getters / sizeof *getters; i++)
        measure(getters[i], device);
    return 0;
}
