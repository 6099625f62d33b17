/* MIG's handles, and what the state says of its instances. */
#ifndef HAMI_MOCK_MIG_H
#define HAMI_MOCK_MIG_H

#include "state.h"

nvmlGpuInstance_t gpu_instance_handle(uint card, uint id);
nvmlComputeInstance_t compute_instance_handle(uint card, uint gpu_instance, uint id);
nvmlReturn_t gpu_instance_of(nvmlGpuInstance_t handle, struct place *place);
nvmlReturn_t compute_instance_of(nvmlComputeInstance_t handle, struct place *place);

/* Each finds what a place says, or returns NVML_ERROR_NOT_FOUND. */
nvmlReturn_t mig_gpu_instance(const struct place *place, struct gpu_instance *found);
nvmlReturn_t mig_compute_instance(const struct place *place, struct compute_instance *found);
nvmlReturn_t mig_profile(uint card, uint id, const struct mig_profile **found);
/* Which of its card's MIG devices it is: what nvmlDeviceGetMigDeviceHandleByIndex finds it by. */
nvmlReturn_t mig_index(const struct place *place, uint *index);
/* The device that has this UUID, if the process may see it. */
nvmlReturn_t mig_by_uuid(const char *uuid, nvmlDevice_t *device);
/* What nvidia-smi calls an instance after its card: 1g.5gb, or 1c.2g.10gb for a part of one. */
void mig_name(char *to, size_t size, const struct mig_profile *profile, uint compute_slices);

#endif
