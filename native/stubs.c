/*
 * Every name of NVML, weakly: what another file of this folder defines takes the place of its stub.
 * The rest is there, so that programs load, and says that it isn't supported.
 */
#include "state.h"

static nvmlReturn_t not_supported(void)
{
    return state_ready() ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_UNINITIALIZED;
}

#define NAME(name) \
    API __attribute__((weak)) nvmlReturn_t name(void); \
    nvmlReturn_t name(void) { return not_supported(); }
#include "names.h"
