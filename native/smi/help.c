#include "smi.h"

int help_show(void)
{
    print(
        "nvidia-smi of hami-mock: shows the mock accelerators of this node.\n"
        "\n"
        "nvidia-smi [OPTION]...\n"
        "  (no option)                     a table of the cards and who uses them\n"
        "  -L                              a list of the cards and their MIG devices\n"
        "  -q [-d PART,...]                everything about the cards, or parts of it: MEMORY,\n"
        "                                  UTILIZATION, ECC, TEMPERATURE, POWER, CLOCK, COMPUTE,\n"
        "                                  PIDS, PERFORMANCE, SUPPORTED_CLOCKS, PAGE_RETIREMENT,\n"
        "                                  ACCOUNTING, ENCODER_STATS, ROW_REMAPPER, VOLTAGE,\n"
        "                                  FBC_STATS, RESET_STATUS\n"
        "  -q -x                           everything as XML\n"
        "  --query-gpu=FIELD,...           fields of the cards, as a list for programs\n"
        "  --query-compute-apps=FIELD,...  the same of processes: timestamp, gpu_name,\n"
        "                                  gpu_bus_id, gpu_serial, gpu_uuid, pid,\n"
        "                                  process_name, used_gpu_memory\n"
        "  --format=csv[,noheader][,nounits]\n"
        "                                  how such lists are written\n"
        "  --help-query-gpu, --help-query-compute-apps\n"
        "                                  name the fields of such lists\n"
        "  -i ID,...                       only these cards: index, UUID or PCI bus ID\n"
        "  -l SECONDS, -lms MILLISECONDS   repeat it until stopped; with -c ROUNDS after it, that\n"
        "                                  many times\n"
        "  --version                       the versions of the driver and its library\n"
        "  -h, --help                      this help\n"
        "\n"
        "Settings, one at a time; they need a running agent:\n"
        "  -pm 0|1                         turn persistence mode off or on\n"
        "  -pl WATTS                       limit the power of the cards\n"
        "  -c 0|2|3                        set the compute mode: default, prohibited, exclusive\n"
        "  -mig 0|1                        turn MIG mode off or on\n"
        "\n"
        "Commands:\n"
        "  dmon [-s GROUPS] [-d SECONDS] [-c ROUNDS]\n"
        "                                  a line of numbers for each card, repeatedly;\n"
        "                                  groups: p power, u use, c clocks, m memory, e errors,\n"
        "                                  t PCIe traffic\n"
        "  pmon [-d SECONDS] [-c ROUNDS]   the same, with a line for each process\n"
        "  topo -m                         how the cards are connected\n"
        "  nvlink -s                       the links of the cards\n"
        "  mig -lgip | -lgipp | -lcip      the profiles of GPU instances, where they can be, and\n"
        "                                  the profiles of compute instances\n"
        "  mig -lgi | -lci                 the GPU or compute instances that there are\n"
        "  mig -cgi PROFILE[:START],... [-C]\n"
        "                                  make GPU instances; with -C, compute instances too\n"
        "  mig -cci [PROFILE,...] [-gi ID,...]\n"
        "                                  make compute instances\n"
        "  mig -dgi [-gi ID,...]           remove GPU instances\n"
        "  mig -dci [-gi ID,...] [-ci ID,...]\n"
        "                                  remove compute instances\n");
    return EXIT_GOOD;
}

int version_show(void)
{
    char library[80] = "N/A", driver[80] = "N/A";
    int cuda = 0;
    nvmlSystemGetNVMLVersion(library, sizeof library);
    nvmlSystemGetDriverVersion(driver, sizeof driver);
    nvmlSystemGetCudaDriverVersion_v2(&cuda);
    /* Of 13.580.65.06, the library's own part is 580.65. */
    const char *own = library;
    uint points = 0;
    for (size_t i = 0; library[i] && points < 3; i++) {
        if (library[i] != '.')
            continue;
        if (++points == 1)
            own = library + i + 1;
        else if (points == 3)
            library[i] = 0;
    }
    print("NVIDIA-SMI version  : %s\n", driver);
    print("NVML version        : %s\n", own);
    print("DRIVER version      : %s\n", driver);
    print("CUDA Version        : %d.%d\n", cuda / 1000, cuda % 1000 / 10);
    return EXIT_GOOD;
}
