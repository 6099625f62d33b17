/* Written by `make proto` from src/hami_mock/views/driver/layout.py and messages.py. */
#ifndef HAMI_MOCK_LAYOUT_H
#define HAMI_MOCK_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define MAGIC 0x4b434f4d494d4148ull
#define VERSION 3u
#define STATE_FILE "cards.bin"
#define STATE_VARIABLE "HAMI_MOCK_DRIVER_STATE"
#define STATE_BESIDE_LIBRARY "../state"
#define STATE_IN_PODS "/run/hami-mock/driver/state"
#define MOST_CARDS 128u
#define RING 256u
#define MOST_PROCESSES 64u
#define MOST_LINKS 36u
#define MOST_GPU_INSTANCES 8u
#define MOST_COMPUTE_INSTANCES 8u
#define MOST_MIG_PROFILES 18u
#define MOST_PLACEMENTS 8u
#define MOST_MEMORY_CLOCKS 4u
#define NO_INSTANCE 0xffffffffu
#define FLAG_ECC 1u
#define FLAG_FAN 2u
#define FLAG_MIG 4u
#define FLAG_ROW_REMAPPER 8u
#define FLAG_MEMORY_TEMPERATURE 16u
#define FLAG_DISPLAY 32u
#define FLAG_FABRIC 64u
#define PROCESS_COMPUTE 1u
#define PROCESS_GRAPHICS 2u
#define PROCESS_MPS 4u
#define SETTER_SOCKET "../run/setters.sock"
#define SET_MIG_MODE 1u
#define CREATE_GPU_INSTANCE 2u
#define DESTROY_GPU_INSTANCE 3u
#define CREATE_COMPUTE_INSTANCE 4u
#define DESTROY_COMPUTE_INSTANCE 5u
#define SET_POWER_LIMIT 10u
#define SET_PERSISTENCE_MODE 11u
#define SET_COMPUTE_MODE 12u
#define SET_ECC_MODE 13u
#define CLEAR_ECC_ERRORS 14u
#define SET_GPU_LOCKED_CLOCKS 15u
#define SET_MEMORY_LOCKED_CLOCKS 16u
#define SET_APPLICATION_CLOCKS 17u
#define SET_ACCOUNTING_MODE 18u

/* Something that happened to a card. */
struct event {
    uint64_t sequence; /* its own place among all events, from 1 on; 0: none was here yet */
    uint64_t type; /* one bit of NVML's event types (8: a critical Xid) */
    uint64_t data; /* the Xid's number, if it is one */
    uint64_t timestamp; /* when it happened, µs since 1970 */
    uint32_t card; /* which card of this file */
    uint32_t gpu_instance; /* NO_INSTANCE: the whole card */
    uint32_t compute_instance; /* NO_INSTANCE: the whole card */
    uint8_t gap_44[4];
};
_Static_assert(sizeof(struct event) == 48, "event");
_Static_assert(offsetof(struct event, sequence) == 0, "event.sequence");
_Static_assert(offsetof(struct event, type) == 8, "event.type");
_Static_assert(offsetof(struct event, data) == 16, "event.data");
_Static_assert(offsetof(struct event, timestamp) == 24, "event.timestamp");
_Static_assert(offsetof(struct event, card) == 32, "event.card");
_Static_assert(offsetof(struct event, gpu_instance) == 36, "event.gpu_instance");
_Static_assert(offsetof(struct event, compute_instance) == 40, "event.compute_instance");
_Static_assert(offsetof(struct event, gap_44) == 44, "event.gap_44");

/* How the file begins. */
struct header {
    uint64_t magic; /* MAGIC */
    uint32_t version; /* VERSION */
    uint32_t header_size; /* bytes of this record */
    uint32_t card_size; /* bytes of a card's record */
    uint32_t card_count; /* how many follow, MOST_CARDS at most */
    uint64_t file_size; /* bytes */
    uint64_t generation; /* another in each file of a folder, never 0 */
    uint32_t moved; /* 1: another file has taken this one's place */
    uint32_t cuda_version; /* 1000 * major + 10 * minor */
    char nvml_version[80]; /* 13.580.65.06: CUDA's major version and the driver's */
    char driver_version[80]; /* 580.65.06 */
    char driver_branch[80]; /* r580_00 */
    uint64_t started; /* when the driver was loaded, µs since 1970 */
    uint64_t event_sequence; /* the newest event's */
    uint32_t event_futex; /* changes with each event; readers sleep on it */
    uint8_t gap_308[4];
    struct event events[256]; /* the newest ones, each at its sequence - 1 modulo RING */
};
_Static_assert(sizeof(struct header) == 12600, "header");
_Static_assert(offsetof(struct header, magic) == 0, "header.magic");
_Static_assert(offsetof(struct header, version) == 8, "header.version");
_Static_assert(offsetof(struct header, header_size) == 12, "header.header_size");
_Static_assert(offsetof(struct header, card_size) == 16, "header.card_size");
_Static_assert(offsetof(struct header, card_count) == 20, "header.card_count");
_Static_assert(offsetof(struct header, file_size) == 24, "header.file_size");
_Static_assert(offsetof(struct header, generation) == 32, "header.generation");
_Static_assert(offsetof(struct header, moved) == 40, "header.moved");
_Static_assert(offsetof(struct header, cuda_version) == 44, "header.cuda_version");
_Static_assert(offsetof(struct header, nvml_version) == 48, "header.nvml_version");
_Static_assert(offsetof(struct header, driver_version) == 128, "header.driver_version");
_Static_assert(offsetof(struct header, driver_branch) == 208, "header.driver_branch");
_Static_assert(offsetof(struct header, started) == 288, "header.started");
_Static_assert(offsetof(struct header, event_sequence) == 296, "header.event_sequence");
_Static_assert(offsetof(struct header, event_futex) == 304, "header.event_futex");
_Static_assert(offsetof(struct header, gap_308) == 308, "header.gap_308");
_Static_assert(offsetof(struct header, events) == 312, "header.events");

/* An NVLink and what is at its other end. */
struct link {
    uint32_t remote_domain; /* PCI address of the other end */
    uint32_t remote_bus;
    uint32_t remote_device;
    uint32_t remote_function;
    uint32_t remote_pci_id; /* device ID << 16 | maker's */
    uint32_t remote_type; /* NVML's: 0 a GPU, 1 an NPU, 2 a switch, 255 unknown */
    uint32_t remote_link; /* its number at the other end */
    uint32_t speed; /* MB/s, one way */
};
_Static_assert(sizeof(struct link) == 32, "link");
_Static_assert(offsetof(struct link, remote_domain) == 0, "link.remote_domain");
_Static_assert(offsetof(struct link, remote_bus) == 4, "link.remote_bus");
_Static_assert(offsetof(struct link, remote_device) == 8, "link.remote_device");
_Static_assert(offsetof(struct link, remote_function) == 12, "link.remote_function");
_Static_assert(offsetof(struct link, remote_pci_id) == 16, "link.remote_pci_id");
_Static_assert(offsetof(struct link, remote_type) == 20, "link.remote_type");
_Static_assert(offsetof(struct link, remote_link) == 24, "link.remote_link");
_Static_assert(offsetof(struct link, speed) == 28, "link.speed");

/* A GPU instance that a card can be cut into. */
struct mig_profile {
    uint64_t memory; /* MiB */
    uint32_t number; /* which of NVML's GPU instance profiles: 0 1_SLICE, 1 2_SLICE, … */
    uint32_t id; /* the profile ID of nvidia-smi: 19, 14, 9, 5, 0, … */
    uint32_t slices; /* of compute; 0: this element of the table is empty */
    uint32_t memory_slices; /* the size of its placements */
    uint32_t most; /* how many a card has room for */
    uint32_t multiprocessors;
    uint32_t copy_engines;
    uint32_t decoders;
    uint32_t encoders;
    uint32_t jpegs;
    uint32_t ofas;
    uint32_t capabilities; /* bits: 1 peer to peer, 2 graphics */
    uint32_t compute_profiles; /* bits: which of NVML's compute instance profiles it can have */
    uint32_t placement_count;
    uint8_t starts[8]; /* where it may begin, in memory slices */
    char name[32]; /* 1g.5gb, without the MIG before it */
};
_Static_assert(sizeof(struct mig_profile) == 104, "mig_profile");
_Static_assert(offsetof(struct mig_profile, memory) == 0, "mig_profile.memory");
_Static_assert(offsetof(struct mig_profile, number) == 8, "mig_profile.number");
_Static_assert(offsetof(struct mig_profile, id) == 12, "mig_profile.id");
_Static_assert(offsetof(struct mig_profile, slices) == 16, "mig_profile.slices");
_Static_assert(offsetof(struct mig_profile, memory_slices) == 20, "mig_profile.memory_slices");
_Static_assert(offsetof(struct mig_profile, most) == 24, "mig_profile.most");
_Static_assert(offsetof(struct mig_profile, multiprocessors) == 28, "mig_profile.multiprocessors");
_Static_assert(offsetof(struct mig_profile, copy_engines) == 32, "mig_profile.copy_engines");
_Static_assert(offsetof(struct mig_profile, decoders) == 36, "mig_profile.decoders");
_Static_assert(offsetof(struct mig_profile, encoders) == 40, "mig_profile.encoders");
_Static_assert(offsetof(struct mig_profile, jpegs) == 44, "mig_profile.jpegs");
_Static_assert(offsetof(struct mig_profile, ofas) == 48, "mig_profile.ofas");
_Static_assert(offsetof(struct mig_profile, capabilities) == 52, "mig_profile.capabilities");
_Static_assert(offsetof(struct mig_profile, compute_profiles) == 56, "mig_profile.compute_profiles");
_Static_assert(offsetof(struct mig_profile, placement_count) == 60, "mig_profile.placement_count");
_Static_assert(offsetof(struct mig_profile, starts) == 64, "mig_profile.starts");
_Static_assert(offsetof(struct mig_profile, name) == 72, "mig_profile.name");

/* What stays as it is. */
struct identity {
    char uuid[80]; /* GPU-… */
    char name[96]; /* the product's */
    char serial[32];
    char board_part_number[80];
    char vbios[32];
    char inforom_image[16];
    char inforom_oem[16];
    char inforom_ecc[16];
    char inforom_power[16];
    char gsp_firmware[64]; /* its version; empty: none */
    uint64_t memory_total; /* bytes */
    uint64_t bar1_total; /* bytes */
    uint32_t flags; /* FLAG_… */
    uint32_t brand; /* NVML's number */
    uint32_t architecture; /* NVML's number */
    uint32_t minor; /* the number of /dev/nvidia… */
    uint32_t pci_domain;
    uint32_t pci_bus;
    uint32_t pci_device;
    uint32_t pci_function;
    uint32_t pci_id; /* device ID << 16 | maker's */
    uint32_t pci_subsystem_id; /* likewise, of the board */
    uint32_t pci_class; /* 0x030200: a 3D controller */
    uint32_t board_id; /* cards with the same one share a board */
    uint32_t module_id; /* its place on the baseboard */
    uint32_t pcie_switch; /* cards with the same one share a PCIe switch; 0: there is none */
    uint32_t pcie_root; /* cards with the same one share a host bridge */
    int32_t numa_node; /* -1: not said */
    uint64_t cpus[16]; /* bits: the CPUs near it */
    uint32_t cores; /* CUDA cores */
    uint32_t multiprocessors;
    uint32_t compute_major; /* of the compute capability */
    uint32_t compute_minor;
    uint32_t memory_bus_width; /* bits */
    uint32_t copy_engines;
    uint32_t decoders;
    uint32_t encoders;
    uint32_t jpegs;
    uint32_t ofas;
    uint32_t power_limit_least; /* mW */
    uint32_t power_limit_most; /* mW */
    uint32_t power_limit_default; /* mW */
    uint32_t graphics_clock_least; /* MHz */
    uint32_t graphics_clock_step; /* MHz between two that can be chosen */
    uint32_t graphics_clock_most; /* MHz */
    uint32_t sm_clock_most; /* MHz */
    uint32_t memory_clock_most; /* MHz */
    uint32_t video_clock_most; /* MHz */
    uint32_t graphics_clock_default; /* MHz, what applications get */
    uint32_t memory_clock_default; /* MHz, what applications get */
    uint32_t memory_clocks[4]; /* MHz that can be chosen, highest first */
    uint32_t pcie_generation_most; /* of the card and its slot */
    uint32_t pcie_generation_card; /* of the card alone */
    uint32_t pcie_width_most; /* lanes */
    uint32_t irq;
    uint32_t fans; /* how many */
    uint32_t fan_least; /* percent */
    uint32_t fan_most; /* percent */
    uint32_t threshold_shutdown; /* °C */
    uint32_t threshold_slowdown; /* °C */
    uint32_t threshold_gpu_most; /* °C */
    uint32_t threshold_memory_most; /* °C; 0: not said */
    uint32_t fabric_clique;
    uint8_t fabric_cluster[16]; /* a UUID's bytes */
    uint32_t link_count; /* NVLinks */
    uint32_t link_version; /* NVML's number */
    uint8_t gap_828[4];
    struct link links[36];
    uint32_t mig_slices; /* memory slices of the whole card */
    uint8_t gap_1988[4];
    struct mig_profile mig_profiles[18];
};
_Static_assert(sizeof(struct identity) == 3864, "identity");
_Static_assert(offsetof(struct identity, uuid) == 0, "identity.uuid");
_Static_assert(offsetof(struct identity, name) == 80, "identity.name");
_Static_assert(offsetof(struct identity, serial) == 176, "identity.serial");
_Static_assert(offsetof(struct identity, board_part_number) == 208, "identity.board_part_number");
_Static_assert(offsetof(struct identity, vbios) == 288, "identity.vbios");
_Static_assert(offsetof(struct identity, inforom_image) == 320, "identity.inforom_image");
_Static_assert(offsetof(struct identity, inforom_oem) == 336, "identity.inforom_oem");
_Static_assert(offsetof(struct identity, inforom_ecc) == 352, "identity.inforom_ecc");
_Static_assert(offsetof(struct identity, inforom_power) == 368, "identity.inforom_power");
_Static_assert(offsetof(struct identity, gsp_firmware) == 384, "identity.gsp_firmware");
_Static_assert(offsetof(struct identity, memory_total) == 448, "identity.memory_total");
_Static_assert(offsetof(struct identity, bar1_total) == 456, "identity.bar1_total");
_Static_assert(offsetof(struct identity, flags) == 464, "identity.flags");
_Static_assert(offsetof(struct identity, brand) == 468, "identity.brand");
_Static_assert(offsetof(struct identity, architecture) == 472, "identity.architecture");
_Static_assert(offsetof(struct identity, minor) == 476, "identity.minor");
_Static_assert(offsetof(struct identity, pci_domain) == 480, "identity.pci_domain");
_Static_assert(offsetof(struct identity, pci_bus) == 484, "identity.pci_bus");
_Static_assert(offsetof(struct identity, pci_device) == 488, "identity.pci_device");
_Static_assert(offsetof(struct identity, pci_function) == 492, "identity.pci_function");
_Static_assert(offsetof(struct identity, pci_id) == 496, "identity.pci_id");
_Static_assert(offsetof(struct identity, pci_subsystem_id) == 500, "identity.pci_subsystem_id");
_Static_assert(offsetof(struct identity, pci_class) == 504, "identity.pci_class");
_Static_assert(offsetof(struct identity, board_id) == 508, "identity.board_id");
_Static_assert(offsetof(struct identity, module_id) == 512, "identity.module_id");
_Static_assert(offsetof(struct identity, pcie_switch) == 516, "identity.pcie_switch");
_Static_assert(offsetof(struct identity, pcie_root) == 520, "identity.pcie_root");
_Static_assert(offsetof(struct identity, numa_node) == 524, "identity.numa_node");
_Static_assert(offsetof(struct identity, cpus) == 528, "identity.cpus");
_Static_assert(offsetof(struct identity, cores) == 656, "identity.cores");
_Static_assert(offsetof(struct identity, multiprocessors) == 660, "identity.multiprocessors");
_Static_assert(offsetof(struct identity, compute_major) == 664, "identity.compute_major");
_Static_assert(offsetof(struct identity, compute_minor) == 668, "identity.compute_minor");
_Static_assert(offsetof(struct identity, memory_bus_width) == 672, "identity.memory_bus_width");
_Static_assert(offsetof(struct identity, copy_engines) == 676, "identity.copy_engines");
_Static_assert(offsetof(struct identity, decoders) == 680, "identity.decoders");
_Static_assert(offsetof(struct identity, encoders) == 684, "identity.encoders");
_Static_assert(offsetof(struct identity, jpegs) == 688, "identity.jpegs");
_Static_assert(offsetof(struct identity, ofas) == 692, "identity.ofas");
_Static_assert(offsetof(struct identity, power_limit_least) == 696, "identity.power_limit_least");
_Static_assert(offsetof(struct identity, power_limit_most) == 700, "identity.power_limit_most");
_Static_assert(offsetof(struct identity, power_limit_default) == 704, "identity.power_limit_default");
_Static_assert(offsetof(struct identity, graphics_clock_least) == 708, "identity.graphics_clock_least");
_Static_assert(offsetof(struct identity, graphics_clock_step) == 712, "identity.graphics_clock_step");
_Static_assert(offsetof(struct identity, graphics_clock_most) == 716, "identity.graphics_clock_most");
_Static_assert(offsetof(struct identity, sm_clock_most) == 720, "identity.sm_clock_most");
_Static_assert(offsetof(struct identity, memory_clock_most) == 724, "identity.memory_clock_most");
_Static_assert(offsetof(struct identity, video_clock_most) == 728, "identity.video_clock_most");
_Static_assert(offsetof(struct identity, graphics_clock_default) == 732, "identity.graphics_clock_default");
_Static_assert(offsetof(struct identity, memory_clock_default) == 736, "identity.memory_clock_default");
_Static_assert(offsetof(struct identity, memory_clocks) == 740, "identity.memory_clocks");
_Static_assert(offsetof(struct identity, pcie_generation_most) == 756, "identity.pcie_generation_most");
_Static_assert(offsetof(struct identity, pcie_generation_card) == 760, "identity.pcie_generation_card");
_Static_assert(offsetof(struct identity, pcie_width_most) == 764, "identity.pcie_width_most");
_Static_assert(offsetof(struct identity, irq) == 768, "identity.irq");
_Static_assert(offsetof(struct identity, fans) == 772, "identity.fans");
_Static_assert(offsetof(struct identity, fan_least) == 776, "identity.fan_least");
_Static_assert(offsetof(struct identity, fan_most) == 780, "identity.fan_most");
_Static_assert(offsetof(struct identity, threshold_shutdown) == 784, "identity.threshold_shutdown");
_Static_assert(offsetof(struct identity, threshold_slowdown) == 788, "identity.threshold_slowdown");
_Static_assert(offsetof(struct identity, threshold_gpu_most) == 792, "identity.threshold_gpu_most");
_Static_assert(offsetof(struct identity, threshold_memory_most) == 796, "identity.threshold_memory_most");
_Static_assert(offsetof(struct identity, fabric_clique) == 800, "identity.fabric_clique");
_Static_assert(offsetof(struct identity, fabric_cluster) == 804, "identity.fabric_cluster");
_Static_assert(offsetof(struct identity, link_count) == 820, "identity.link_count");
_Static_assert(offsetof(struct identity, link_version) == 824, "identity.link_version");
_Static_assert(offsetof(struct identity, gap_828) == 828, "identity.gap_828");
_Static_assert(offsetof(struct identity, links) == 832, "identity.links");
_Static_assert(offsetof(struct identity, mig_slices) == 1984, "identity.mig_slices");
_Static_assert(offsetof(struct identity, gap_1988) == 1988, "identity.gap_1988");
_Static_assert(offsetof(struct identity, mig_profiles) == 1992, "identity.mig_profiles");

/* A program that has opened the card. */
struct process {
    uint64_t memory; /* bytes of the card's */
    uint64_t started; /* µs since 1970 */
    uint32_t pid; /* of the node's PID namespace; 0: this element and all after it are empty */
    uint32_t gpu_instance; /* NO_INSTANCE: the whole card */
    uint32_t compute_instance; /* NO_INSTANCE: the whole card */
    uint8_t type; /* PROCESS_… */
    uint8_t sm; /* percent */
    uint8_t memory_busy; /* percent */
    uint8_t encoder; /* percent */
    uint8_t decoder; /* percent */
    uint8_t jpeg; /* percent */
    uint8_t ofa; /* percent */
    char name[64];
    char owner[48]; /* what HAMi's library knows its container by; empty: it isn't there */
    uint8_t gap_147[5];
};
_Static_assert(sizeof(struct process) == 152, "process");
_Static_assert(offsetof(struct process, memory) == 0, "process.memory");
_Static_assert(offsetof(struct process, started) == 8, "process.started");
_Static_assert(offsetof(struct process, pid) == 16, "process.pid");
_Static_assert(offsetof(struct process, gpu_instance) == 20, "process.gpu_instance");
_Static_assert(offsetof(struct process, compute_instance) == 24, "process.compute_instance");
_Static_assert(offsetof(struct process, type) == 28, "process.type");
_Static_assert(offsetof(struct process, sm) == 29, "process.sm");
_Static_assert(offsetof(struct process, memory_busy) == 30, "process.memory_busy");
_Static_assert(offsetof(struct process, encoder) == 31, "process.encoder");
_Static_assert(offsetof(struct process, decoder) == 32, "process.decoder");
_Static_assert(offsetof(struct process, jpeg) == 33, "process.jpeg");
_Static_assert(offsetof(struct process, ofa) == 34, "process.ofa");
_Static_assert(offsetof(struct process, name) == 35, "process.name");
_Static_assert(offsetof(struct process, owner) == 99, "process.owner");
_Static_assert(offsetof(struct process, gap_147) == 147, "process.gap_147");

/* A GPU instance of MIG. Its profile says what it has. */
struct gpu_instance {
    uint64_t memory_used; /* bytes */
    uint64_t memory_reserved; /* bytes */
    uint64_t memory_total; /* bytes */
    uint32_t used; /* 1: it is there; 0: this element of the table is empty */
    uint32_t id; /* below 32 */
    uint32_t profile; /* its profile's id */
    uint32_t start; /* in memory slices */
    uint32_t size; /* in memory slices */
    uint8_t gap_44[4];
};
_Static_assert(sizeof(struct gpu_instance) == 48, "gpu_instance");
_Static_assert(offsetof(struct gpu_instance, memory_used) == 0, "gpu_instance.memory_used");
_Static_assert(offsetof(struct gpu_instance, memory_reserved) == 8, "gpu_instance.memory_reserved");
_Static_assert(offsetof(struct gpu_instance, memory_total) == 16, "gpu_instance.memory_total");
_Static_assert(offsetof(struct gpu_instance, used) == 24, "gpu_instance.used");
_Static_assert(offsetof(struct gpu_instance, id) == 28, "gpu_instance.id");
_Static_assert(offsetof(struct gpu_instance, profile) == 32, "gpu_instance.profile");
_Static_assert(offsetof(struct gpu_instance, start) == 36, "gpu_instance.start");
_Static_assert(offsetof(struct gpu_instance, size) == 40, "gpu_instance.size");
_Static_assert(offsetof(struct gpu_instance, gap_44) == 44, "gpu_instance.gap_44");

/* A compute instance of MIG: with its GPU instance, a MIG device. Its index is its place here. */
struct compute_instance {
    char uuid[80]; /* MIG-… */
    uint32_t used; /* 1: it is there; 0: this element of the table is empty */
    uint32_t gpu_instance; /* the ID of the one that it is in */
    uint32_t id; /* below 8 */
    uint32_t profile; /* which of NVML's compute instance profiles, by its number */
    uint32_t start; /* in compute slices of its GPU instance */
    uint32_t size; /* in compute slices */
    uint32_t slices; /* of compute */
    uint32_t sm; /* percent */
};
_Static_assert(sizeof(struct compute_instance) == 112, "compute_instance");
_Static_assert(offsetof(struct compute_instance, uuid) == 0, "compute_instance.uuid");
_Static_assert(offsetof(struct compute_instance, used) == 80, "compute_instance.used");
_Static_assert(offsetof(struct compute_instance, gpu_instance) == 84, "compute_instance.gpu_instance");
_Static_assert(offsetof(struct compute_instance, id) == 88, "compute_instance.id");
_Static_assert(offsetof(struct compute_instance, profile) == 92, "compute_instance.profile");
_Static_assert(offsetof(struct compute_instance, start) == 96, "compute_instance.start");
_Static_assert(offsetof(struct compute_instance, size) == 100, "compute_instance.size");
_Static_assert(offsetof(struct compute_instance, slices) == 104, "compute_instance.slices");
_Static_assert(offsetof(struct compute_instance, sm) == 108, "compute_instance.sm");

/* What changes, under a sequence lock. */
struct live {
    uint64_t sequence; /* odd while somebody writes */
    uint64_t timestamp; /* when this was true, µs since 1970 */
    uint32_t lost; /* 1: it has fallen off the bus */
    uint32_t recovery_action; /* NVML's: 0 none, 1 reset, 2 reboot, 3 drain, 4 both */
    uint32_t last_xid; /* 0: there was none */
    uint32_t gpu;
    uint32_t memory;
    uint32_t encoder;
    uint32_t decoder;
    uint32_t jpeg;
    uint32_t ofa;
    uint32_t tensor; /* hundredths of a percent of the time that the tensor cores were busy */
    uint32_t dram; /* likewise, that memory was read or written */
    uint8_t gap_60[4];
    uint64_t memory_used; /* bytes, without the reserved ones */
    uint64_t memory_reserved; /* bytes */
    uint64_t memory_free; /* bytes */
    uint64_t bar1_used; /* bytes */
    uint64_t energy; /* mJ since the driver was loaded */
    uint32_t power; /* mW now */
    uint32_t power_average; /* mW over the last second */
    uint32_t power_limit; /* mW, as set */
    uint32_t power_limit_enforced; /* mW */
    uint32_t temperature; /* °C */
    uint32_t memory_temperature; /* °C */
    uint32_t fan; /* percent */
    uint32_t fan_rpm;
    uint32_t performance_state; /* 0 to 15 */
    uint32_t graphics_clock; /* MHz */
    uint32_t sm_clock; /* MHz */
    uint32_t memory_clock; /* MHz */
    uint32_t video_clock; /* MHz */
    uint32_t graphics_clock_set; /* MHz for applications; 0: the default one */
    uint32_t memory_clock_set; /* MHz for applications; 0: the default one */
    uint32_t gpu_locked_least; /* MHz; 0 and 0: not locked */
    uint32_t gpu_locked_most; /* MHz */
    uint32_t memory_locked_least; /* MHz; 0 and 0: not locked */
    uint32_t memory_locked_most; /* MHz */
    uint8_t gap_180[4];
    uint64_t clock_reasons; /* NVML's bits: why the clocks are as low as they are */
    uint64_t violations[12]; /* ns that each of NVML's performance policies has held it back */
    uint32_t pcie_generation; /* now */
    uint32_t pcie_width; /* lanes now */
    uint32_t pcie_sent; /* KB/s */
    uint32_t pcie_received; /* KB/s */
    uint32_t pcie_replays; /* since the driver was loaded */
    uint8_t gap_308[4];
    uint64_t links_down; /* bits: NVLinks that don't work now */
    uint64_t links_sent[36]; /* KiB by each NVLink since the driver was loaded */
    uint64_t links_received[36]; /* likewise */
    uint32_t link_errors[36]; /* of each NVLink, of all kinds */
    uint64_t ecc_sram_corrected;
    uint64_t ecc_sram_uncorrected;
    uint64_t ecc_dram_corrected;
    uint64_t ecc_dram_uncorrected;
    uint64_t ecc_sram_corrected_ever;
    uint64_t ecc_sram_uncorrected_ever;
    uint64_t ecc_dram_corrected_ever;
    uint64_t ecc_dram_uncorrected_ever;
    uint32_t remapped_corrected; /* rows, for errors that were corrected */
    uint32_t remapped_uncorrected; /* rows, for errors that weren't */
    uint32_t remap_pending; /* 1: some wait for a reset */
    uint32_t remap_failed; /* 1: one couldn't be remapped */
    uint32_t remap_banks[5]; /* banks with all, most, some, few and no spare rows left */
    uint32_t retired_single; /* pages, for single bit errors */
    uint32_t retired_double; /* pages, for double bit errors */
    uint32_t retired_pending; /* 1: some wait for a reset */
    uint32_t persistence_mode; /* 0 or 1 */
    uint32_t compute_mode; /* NVML's: 0 default, 2 prohibited, 3 exclusive process */
    uint32_t ecc_mode; /* 0 or 1 */
    uint32_t ecc_mode_pending; /* 0 or 1, from the next reset on */
    uint32_t accounting_mode; /* 0 or 1 */
    uint32_t mig_mode; /* 0 or 1 */
    uint32_t mig_mode_pending; /* 0 or 1, from the next reset on */
    uint32_t process_count; /* how many of `processes` there are */
    struct process processes[64];
    struct gpu_instance gpu_instances[8];
    struct compute_instance compute_instances[8];
};
_Static_assert(sizeof(struct live) == 12192, "live");
_Static_assert(offsetof(struct live, sequence) == 0, "live.sequence");
_Static_assert(offsetof(struct live, timestamp) == 8, "live.timestamp");
_Static_assert(offsetof(struct live, lost) == 16, "live.lost");
_Static_assert(offsetof(struct live, recovery_action) == 20, "live.recovery_action");
_Static_assert(offsetof(struct live, last_xid) == 24, "live.last_xid");
_Static_assert(offsetof(struct live, gpu) == 28, "live.gpu");
_Static_assert(offsetof(struct live, memory) == 32, "live.memory");
_Static_assert(offsetof(struct live, encoder) == 36, "live.encoder");
_Static_assert(offsetof(struct live, decoder) == 40, "live.decoder");
_Static_assert(offsetof(struct live, jpeg) == 44, "live.jpeg");
_Static_assert(offsetof(struct live, ofa) == 48, "live.ofa");
_Static_assert(offsetof(struct live, tensor) == 52, "live.tensor");
_Static_assert(offsetof(struct live, dram) == 56, "live.dram");
_Static_assert(offsetof(struct live, gap_60) == 60, "live.gap_60");
_Static_assert(offsetof(struct live, memory_used) == 64, "live.memory_used");
_Static_assert(offsetof(struct live, memory_reserved) == 72, "live.memory_reserved");
_Static_assert(offsetof(struct live, memory_free) == 80, "live.memory_free");
_Static_assert(offsetof(struct live, bar1_used) == 88, "live.bar1_used");
_Static_assert(offsetof(struct live, energy) == 96, "live.energy");
_Static_assert(offsetof(struct live, power) == 104, "live.power");
_Static_assert(offsetof(struct live, power_average) == 108, "live.power_average");
_Static_assert(offsetof(struct live, power_limit) == 112, "live.power_limit");
_Static_assert(offsetof(struct live, power_limit_enforced) == 116, "live.power_limit_enforced");
_Static_assert(offsetof(struct live, temperature) == 120, "live.temperature");
_Static_assert(offsetof(struct live, memory_temperature) == 124, "live.memory_temperature");
_Static_assert(offsetof(struct live, fan) == 128, "live.fan");
_Static_assert(offsetof(struct live, fan_rpm) == 132, "live.fan_rpm");
_Static_assert(offsetof(struct live, performance_state) == 136, "live.performance_state");
_Static_assert(offsetof(struct live, graphics_clock) == 140, "live.graphics_clock");
_Static_assert(offsetof(struct live, sm_clock) == 144, "live.sm_clock");
_Static_assert(offsetof(struct live, memory_clock) == 148, "live.memory_clock");
_Static_assert(offsetof(struct live, video_clock) == 152, "live.video_clock");
_Static_assert(offsetof(struct live, graphics_clock_set) == 156, "live.graphics_clock_set");
_Static_assert(offsetof(struct live, memory_clock_set) == 160, "live.memory_clock_set");
_Static_assert(offsetof(struct live, gpu_locked_least) == 164, "live.gpu_locked_least");
_Static_assert(offsetof(struct live, gpu_locked_most) == 168, "live.gpu_locked_most");
_Static_assert(offsetof(struct live, memory_locked_least) == 172, "live.memory_locked_least");
_Static_assert(offsetof(struct live, memory_locked_most) == 176, "live.memory_locked_most");
_Static_assert(offsetof(struct live, gap_180) == 180, "live.gap_180");
_Static_assert(offsetof(struct live, clock_reasons) == 184, "live.clock_reasons");
_Static_assert(offsetof(struct live, violations) == 192, "live.violations");
_Static_assert(offsetof(struct live, pcie_generation) == 288, "live.pcie_generation");
_Static_assert(offsetof(struct live, pcie_width) == 292, "live.pcie_width");
_Static_assert(offsetof(struct live, pcie_sent) == 296, "live.pcie_sent");
_Static_assert(offsetof(struct live, pcie_received) == 300, "live.pcie_received");
_Static_assert(offsetof(struct live, pcie_replays) == 304, "live.pcie_replays");
_Static_assert(offsetof(struct live, gap_308) == 308, "live.gap_308");
_Static_assert(offsetof(struct live, links_down) == 312, "live.links_down");
_Static_assert(offsetof(struct live, links_sent) == 320, "live.links_sent");
_Static_assert(offsetof(struct live, links_received) == 608, "live.links_received");
_Static_assert(offsetof(struct live, link_errors) == 896, "live.link_errors");
_Static_assert(offsetof(struct live, ecc_sram_corrected) == 1040, "live.ecc_sram_corrected");
_Static_assert(offsetof(struct live, ecc_sram_uncorrected) == 1048, "live.ecc_sram_uncorrected");
_Static_assert(offsetof(struct live, ecc_dram_corrected) == 1056, "live.ecc_dram_corrected");
_Static_assert(offsetof(struct live, ecc_dram_uncorrected) == 1064, "live.ecc_dram_uncorrected");
_Static_assert(offsetof(struct live, ecc_sram_corrected_ever) == 1072, "live.ecc_sram_corrected_ever");
_Static_assert(offsetof(struct live, ecc_sram_uncorrected_ever) == 1080, "live.ecc_sram_uncorrected_ever");
_Static_assert(offsetof(struct live, ecc_dram_corrected_ever) == 1088, "live.ecc_dram_corrected_ever");
_Static_assert(offsetof(struct live, ecc_dram_uncorrected_ever) == 1096, "live.ecc_dram_uncorrected_ever");
_Static_assert(offsetof(struct live, remapped_corrected) == 1104, "live.remapped_corrected");
_Static_assert(offsetof(struct live, remapped_uncorrected) == 1108, "live.remapped_uncorrected");
_Static_assert(offsetof(struct live, remap_pending) == 1112, "live.remap_pending");
_Static_assert(offsetof(struct live, remap_failed) == 1116, "live.remap_failed");
_Static_assert(offsetof(struct live, remap_banks) == 1120, "live.remap_banks");
_Static_assert(offsetof(struct live, retired_single) == 1140, "live.retired_single");
_Static_assert(offsetof(struct live, retired_double) == 1144, "live.retired_double");
_Static_assert(offsetof(struct live, retired_pending) == 1148, "live.retired_pending");
_Static_assert(offsetof(struct live, persistence_mode) == 1152, "live.persistence_mode");
_Static_assert(offsetof(struct live, compute_mode) == 1156, "live.compute_mode");
_Static_assert(offsetof(struct live, ecc_mode) == 1160, "live.ecc_mode");
_Static_assert(offsetof(struct live, ecc_mode_pending) == 1164, "live.ecc_mode_pending");
_Static_assert(offsetof(struct live, accounting_mode) == 1168, "live.accounting_mode");
_Static_assert(offsetof(struct live, mig_mode) == 1172, "live.mig_mode");
_Static_assert(offsetof(struct live, mig_mode_pending) == 1176, "live.mig_mode_pending");
_Static_assert(offsetof(struct live, process_count) == 1180, "live.process_count");
_Static_assert(offsetof(struct live, processes) == 1184, "live.processes");
_Static_assert(offsetof(struct live, gpu_instances) == 10912, "live.gpu_instances");
_Static_assert(offsetof(struct live, compute_instances) == 11296, "live.compute_instances");

/* A card. */
struct card {
    struct identity identity;
    struct live live;
};
_Static_assert(sizeof(struct card) == 16056, "card");
_Static_assert(offsetof(struct card, identity) == 0, "card.identity");
_Static_assert(offsetof(struct card, live) == 3864, "card.live");

/* What a setter asks of the agent. */
struct request {
    uint64_t magic; /* MAGIC */
    uint32_t version; /* VERSION */
    uint32_t operation; /* SET_MIG_MODE, … */
    uint64_t generation; /* of the file that the asker sees; the agent refuses another */
    uint32_t card; /* which card of the file */
    uint32_t gpu_instance;
    uint32_t compute_instance;
    uint32_t profile; /* a GPU instance profile's id, or a compute instance profile's */
    uint32_t start;
    uint32_t size;
    uint64_t values[2];
};
_Static_assert(sizeof(struct request) == 64, "request");
_Static_assert(offsetof(struct request, magic) == 0, "request.magic");
_Static_assert(offsetof(struct request, version) == 8, "request.version");
_Static_assert(offsetof(struct request, operation) == 12, "request.operation");
_Static_assert(offsetof(struct request, generation) == 16, "request.generation");
_Static_assert(offsetof(struct request, card) == 24, "request.card");
_Static_assert(offsetof(struct request, gpu_instance) == 28, "request.gpu_instance");
_Static_assert(offsetof(struct request, compute_instance) == 32, "request.compute_instance");
_Static_assert(offsetof(struct request, profile) == 36, "request.profile");
_Static_assert(offsetof(struct request, start) == 40, "request.start");
_Static_assert(offsetof(struct request, size) == 44, "request.size");
_Static_assert(offsetof(struct request, values) == 48, "request.values");

/* What the agent answers. */
struct reply {
    uint64_t magic; /* MAGIC */
    uint32_t result; /* NVML's code; 0: done */
    uint32_t activation; /* of SET_MIG_MODE: NVML's code of what came of it */
    uint32_t gpu_instance; /* the ID of the one that was made */
    uint32_t compute_instance; /* the ID of the one that was made */
};
_Static_assert(sizeof(struct reply) == 24, "reply");
_Static_assert(offsetof(struct reply, magic) == 0, "reply.magic");
_Static_assert(offsetof(struct reply, result) == 8, "reply.result");
_Static_assert(offsetof(struct reply, activation) == 12, "reply.activation");
_Static_assert(offsetof(struct reply, gpu_instance) == 16, "reply.gpu_instance");
_Static_assert(offsetof(struct reply, compute_instance) == 20, "reply.compute_instance");

#endif
