/*
 * What stands in for the driver's other libraries: libcuda and its like. There is nothing to compute
 * with, and every function says so in the way that its callers understand: no device, or not
 * supported. One file has the entry points of all of them; a program that needs another one doesn't
 * load. Freestanding, like libnvidia-ml.
 */
#define SHOWN __attribute__((visibility("default")))

/* CUDA's driver interface: CUDA_ERROR_NO_DEVICE, but for what needs none. */
enum { CUDA_SUCCESS = 0, CUDA_INVALID_VALUE = 1, CUDA_NO_DEVICE = 100, CUDA_NOT_FOUND = 500 };

static const char *const no_device_name = "CUDA_ERROR_NO_DEVICE";
static const char *const no_device_text = "no CUDA-capable device is detected: hami-mock's cards don't compute";

#define NO_DEVICE(name) \
    SHOWN int name(void) { return CUDA_NO_DEVICE; }

NO_DEVICE(cuInit)
NO_DEVICE(cuDeviceGet)
NO_DEVICE(cuDeviceGetAttribute)
NO_DEVICE(cuDeviceGetName)
NO_DEVICE(cuDeviceGetUuid)
NO_DEVICE(cuDeviceGetUuid_v2)
NO_DEVICE(cuDeviceGetPCIBusId)
NO_DEVICE(cuDeviceTotalMem)
NO_DEVICE(cuDeviceTotalMem_v2)
NO_DEVICE(cuDeviceComputeCapability)
NO_DEVICE(cuDevicePrimaryCtxRetain)
NO_DEVICE(cuCtxCreate)
NO_DEVICE(cuCtxCreate_v2)
NO_DEVICE(cuCtxGetCurrent)
NO_DEVICE(cuMemGetInfo)
NO_DEVICE(cuMemGetInfo_v2)

SHOWN int cuDeviceGetCount(int *count)
{
    if (count)
        *count = 0;
    return CUDA_NO_DEVICE;
}

/* Who makes a driver root writes the version there, behind the mark: that of its NVML. */
static const volatile struct {
    char mark[20];
    int version;
} cuda = {"hami-mock's CUDA is", 13000};
_Static_assert(sizeof cuda == 24, "the version follows the mark");

SHOWN int cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_INVALID_VALUE;
    *version = cuda.version;
    return CUDA_SUCCESS;
}

static int give(const char **to, const char *text, int code)
{
    if (!to)
        return CUDA_INVALID_VALUE;
    *to = code == CUDA_NO_DEVICE ? text : (const char *)0;
    return code == CUDA_NO_DEVICE ? CUDA_SUCCESS : CUDA_INVALID_VALUE;
}

SHOWN int cuGetErrorName(int code, const char **name) { return give(name, no_device_name, code); }
SHOWN int cuGetErrorString(int code, const char **text) { return give(text, no_device_text, code); }

static int not_found(void **function)
{
    if (function)
        *function = (void *)0;
    return CUDA_NOT_FOUND;
}

SHOWN int cuGetProcAddress(const char *name, void **function) { return (void)name, not_found(function); }
SHOWN int cuGetProcAddress_v2(const char *name, void **function) { return (void)name, not_found(function); }
SHOWN int cuGetExportTable(void **table, const void *id) { return (void)id, not_found(table); }

/* Video: NV_ENC_ERR_NO_ENCODE_DEVICE, CUDA_ERROR_NO_DEVICE. */
enum { NO_ENCODE_DEVICE = 1 };

SHOWN int NvEncodeAPICreateInstance(void *functions) { return (void)functions, NO_ENCODE_DEVICE; }
SHOWN int NvEncodeAPIGetMaxSupportedVersion(unsigned *version) { return (void)version, NO_ENCODE_DEVICE; }
NO_DEVICE(cuvidGetDecoderCaps)
NO_DEVICE(cuvidCreateDecoder)
NO_DEVICE(cuvidCreateVideoParser)
