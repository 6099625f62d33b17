/* Prints a line for each card that NVML shows, its UUID and its memory in MiB; then it waits. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#define FIND(name) __typeof__(name) *name##_found = (__typeof__(name) *)dlsym(library, #name)

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **card);
int nvmlDeviceGetUUID(void *card, char *text, unsigned size);
int nvmlDeviceGetMemoryInfo(void *card, unsigned long long *total_free_used);

int main(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    FIND(nvmlInit_v2);
    FIND(nvmlDeviceGetCount_v2);
    FIND(nvmlDeviceGetHandleByIndex_v2);
    FIND(nvmlDeviceGetUUID);
    FIND(nvmlDeviceGetMemoryInfo);
    unsigned count;
    if (nvmlInit_v2_found() || nvmlDeviceGetCount_v2_found(&count))
        return 2;
    for (unsigned index = 0; index < count; index++) {
        void *card;
        char uuid[96];
        unsigned long long memory[3];
        if (nvmlDeviceGetHandleByIndex_v2_found(index, &card) ||
            nvmlDeviceGetUUID_found(card, uuid, sizeof uuid) ||
            nvmlDeviceGetMemoryInfo_found(card, memory))
            return 3;
        printf("%s %llu\n", uuid, memory[0] >> 20);
    }
    fflush(stdout);
    return pause();
}
