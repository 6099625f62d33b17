/* MIG's instances: walks over them for who lists, makes or removes them. */
#ifndef HAMI_MOCK_SMI_INSTANCES_H
#define HAMI_MOCK_SMI_INSTANCES_H

#include "smi.h"

typedef nvmlGpuInstanceProfileInfo_v3_t gpu_profile;
typedef nvmlComputeInstanceProfileInfo_v3_t compute_profile;

/* More than NVML has numbers for profiles. */
enum { GPU_PROFILES = MOST_MIG_PROFILES, COMPUTE_PROFILES = 9 };

bool gpu_profile_numbered(nvmlDevice_t card, uint number, gpu_profile *to);
bool compute_profile_numbered(nvmlGpuInstance_t instance, uint number, compute_profile *to);

struct gpu_part {
    nvmlGpuInstance_t handle;
    nvmlGpuInstanceInfo_t info;
    gpu_profile profile;
};
struct compute_part {
    nvmlComputeInstance_t handle;
    nvmlComputeInstanceInfo_v2_t info;
    compute_profile profile;
};
/* Each returns how many there are, by profile and place. */
uint gpu_parts(nvmlDevice_t card, struct gpu_part to[MOST_GPU_INSTANCES]);
uint compute_parts(nvmlGpuInstance_t instance, struct compute_part to[MOST_COMPUTE_INSTANCES]);

/* The options that make and remove; a list of NULL: all, or the default. */
struct wanted {
    const char *profiles, *gpu_ids, *compute_ids;
    bool with_compute;
};
int gpu_instances_make(const struct cards *cards, const struct wanted *wanted);
int gpu_instances_remove(const struct cards *cards, const struct wanted *wanted);
int compute_instances_make(const struct cards *cards, const struct wanted *wanted);
int compute_instances_remove(const struct cards *cards, const struct wanted *wanted);

/* Prints that it failed, and returns what the program should. */
int mig_failed(const char *what, nvmlReturn_t result);

#endif
