/* mig: what instances there are and can be. */
#include "instances.h"

bool gpu_profile_numbered(nvmlDevice_t card, uint number, gpu_profile *to)
{
    to->version = VERSION_OF(gpu_profile, 3);
    return nvmlDeviceGetGpuInstanceProfileInfoV(card, number, to) == NVML_SUCCESS;
}

bool compute_profile_numbered(nvmlGpuInstance_t instance, uint number, compute_profile *to)
{
    to->version = VERSION_OF(compute_profile, 3);
    return nvmlGpuInstanceGetComputeInstanceProfileInfoV(instance, number, 0, to) == NVML_SUCCESS;
}

uint gpu_parts(nvmlDevice_t card, struct gpu_part to[MOST_GPU_INSTANCES])
{
    uint count = 0;
    for (uint number = 0; number < GPU_PROFILES; number++) {
        gpu_profile profile;
        nvmlGpuInstance_t found[MOST_GPU_INSTANCES];
        uint found_count = 0;
        if (!gpu_profile_numbered(card, number, &profile) ||
            nvmlDeviceGetGpuInstances(card, profile.id, found, &found_count) != NVML_SUCCESS)
            continue;
        for (uint i = 0; i < found_count && count < MOST_GPU_INSTANCES; i++) {
            struct gpu_part *part = &to[count];
            *part = (struct gpu_part){.handle = found[i], .profile = profile};
            count += nvmlGpuInstanceGetInfo(found[i], &part->info) == NVML_SUCCESS;
        }
    }
    return count;
}

uint compute_parts(nvmlGpuInstance_t instance, struct compute_part to[MOST_COMPUTE_INSTANCES])
{
    uint count = 0;
    for (uint number = 0; number < COMPUTE_PROFILES; number++) {
        compute_profile profile;
        nvmlComputeInstance_t found[MOST_COMPUTE_INSTANCES];
        uint found_count = 0;
        if (!compute_profile_numbered(instance, number, &profile) ||
            nvmlGpuInstanceGetComputeInstances(instance, profile.first.id, found, &found_count) !=
                NVML_SUCCESS)
            continue;
        for (uint i = 0; i < found_count && count < MOST_COMPUTE_INSTANCES; i++) {
            struct compute_part *part = &to[count];
            *part = (struct compute_part){.handle = found[i], .profile = profile};
            count += nvmlComputeInstanceGetInfo_v2(found[i], &part->info) == NVML_SUCCESS;
        }
    }
    return count;
}

int mig_failed(const char *what, nvmlReturn_t result)
{
    print("Failed to %s: %s\n", what, nvmlErrorString(result));
    return (int)result;
}

static void rule(char corner, char dash, uint width)
{
    print("%c", corner);
    print_line(dash, width);
    print("%c\n", corner);
}

/* GPU instances. */

/* Finds the profiles of a card, those of few slices first; returns how many. */
static uint sorted_profiles(nvmlDevice_t card, gpu_profile to[GPU_PROFILES])
{
    enum { MOST_SLICES = 8 };
    gpu_profile found;
    uint count = 0;
    for (uint slices = 1; slices <= MOST_SLICES; slices++)
        for (uint number = 0; number < GPU_PROFILES; number++)
            if (gpu_profile_numbered(card, number, &found) && found.sliceCount == slices)
                to[count++] = found;
    return count;
}

static void list_gpu_profiles(const struct chosen *card)
{
    gpu_profile profiles[GPU_PROFILES];
    uint count = sorted_profiles(card->device, profiles);
    for (uint i = 0; i < count; i++) {
        gpu_profile profile = profiles[i];
        uint left = 0;
        nvmlDeviceGetGpuInstanceRemainingCapacity(card->device, profile.id, &left);
        char memory[24];
        text_print(memory, sizeof memory, "%u.%02u", (uint)(profile.memorySizeMB / 1024),
                   (uint)(profile.memorySizeMB % 1024 * 100 / 1024));
        print("|%4u  %-16s %3u %5u/%-3u      %-5s      %-3s    %-3u%5u%6u   |\n", card->index,
              profile.name, profile.id, left, profile.instanceCount, memory,
              profile.capabilities & 1 ? "Yes" : "No", profile.engines.multiprocessorCount,
              profile.engines.decoderCount, profile.engines.encoderCount);
        print("|%62u%6u%6u   |\n", profile.engines.copyEngineCount, profile.engines.jpegCount,
              profile.engines.ofaCount);
        rule('+', '-', 77);
    }
}

static int list_all_gpu_profiles(const struct cards *cards)
{
    rule('+', '-', 77);
    print("| GPU instance profiles:                                                      |\n"
          "| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |\n"
          "|                              Free/Total   GiB              CE    JPEG  OFA  |\n");
    rule('|', '=', 77);
    for (uint i = 0; i < cards->count; i++)
        list_gpu_profiles(&cards->card[i]);
    return EXIT_GOOD;
}

static int list_placements(const struct cards *cards)
{
    for (uint i = 0; i < cards->count; i++) {
        nvmlDevice_t device = cards->card[i].device;
        gpu_profile profiles[GPU_PROFILES];
        uint profile_count = sorted_profiles(device, profiles);
        for (uint p = 0; p < profile_count; p++) {
            nvmlPlacement_t places[MOST_PLACEMENTS];
            uint count = MOST_PLACEMENTS;
            if (nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, profiles[p].id, places,
                                                              &count) != NVML_SUCCESS ||
                !count)
                continue;
            print("GPU %2u Profile ID %2u Placement%s: {", cards->card[i].index, profiles[p].id,
                  count > 1 ? "s" : " ");
            for (uint k = 0; k < count; k++)
                print(k ? ",%u" : "%u", places[k].start);
            print("}:%u\n", places[0].size);
        }
    }
    return EXIT_GOOD;
}

static int list_gpu_instances(const struct cards *cards)
{
    uint shown = 0;
    for (uint i = 0; i < cards->count; i++) {
        struct gpu_part parts[MOST_GPU_INSTANCES];
        uint count = gpu_parts(cards->card[i].device, parts);
        for (uint k = 0; k < count; k++) {
            const nvmlGpuInstanceInfo_t *info = &parts[k].info;
            if (!shown++) {
                rule('+', '-', 55);
                print("| GPU instances:                                        |\n"
                      "| GPU   Name             Profile  Instance   Placement  |\n"
                      "|                          ID       ID       Start:Size |\n");
                rule('|', '=', 55);
            }
            print("|%4u  %-16s %5u %8u %10u:%-6u|\n", cards->card[i].index, parts[k].profile.name,
                  info->profileId, info->id, info->placement.start, info->placement.size);
            rule('+', '-', 55);
        }
    }
    if (!shown)
        print("No GPU instances found: Not Found\n");
    return shown ? EXIT_GOOD : EXIT_NOT_FOUND;
}

/* Compute instances. */

static int list_compute_profiles(const struct cards *cards)
{
    uint shown = 0;
    for (uint i = 0; i < cards->count; i++) {
        struct gpu_part parts[MOST_GPU_INSTANCES];
        uint count = gpu_parts(cards->card[i].device, parts);
        for (uint k = 0; k < count; k++)
            for (uint number = 0; number < COMPUTE_PROFILES; number++) {
                compute_profile profile;
                uint left = 0;
                if (!compute_profile_numbered(parts[k].handle, number, &profile))
                    continue;
                const nvmlEngines_t *has = &profile.first.engines;
                nvmlGpuInstanceGetComputeInstanceRemainingCapacity(parts[k].handle,
                                                                   profile.first.id, &left);
                if (!shown++) {
                    rule('+', '-', 86);
                    print("| Compute instance profiles:"
                          "                                                           |\n"
                          "| GPU     GPU       Name             Profile  Instances   Exclusive "
                          "      Shared       |\n"
                          "|       Instance                       ID     Free/Total     SM     "
                          "  DEC   ENC   OFA  |\n"
                          "|         ID                                                        "
                          "  CE    JPEG       |\n");
                    rule('|', '=', 86);
                }
                /* The star marks the default one: all of the GPU instance. */
                print("|%4u %6u       %-16s %5u%c %5u/%-3u %10u %8u %5u %5u   |\n",
                      cards->card[i].index, parts[k].info.id, profile.name, profile.first.id,
                      profile.first.sliceCount == parts[k].profile.sliceCount ? '*' : ' ', left,
                      profile.first.instanceCount, has->multiprocessorCount, has->decoderCount,
                      has->encoderCount, has->ofaCount);
                print("|%71u %5u         |\n", has->copyEngineCount, has->jpegCount);
                rule('+', '-', 86);
            }
    }
    if (!shown)
        print("No GPU instances found: Not Found\n");
    return shown ? EXIT_GOOD : EXIT_NOT_FOUND;
}

static int list_compute_instances(const struct cards *cards)
{
    uint shown = 0;
    for (uint i = 0; i < cards->count; i++) {
        struct gpu_part parts[MOST_GPU_INSTANCES];
        uint count = gpu_parts(cards->card[i].device, parts);
        for (uint k = 0; k < count; k++) {
            struct compute_part inside[MOST_COMPUTE_INSTANCES];
            uint found = compute_parts(parts[k].handle, inside);
            for (uint c = 0; c < found; c++) {
                const nvmlComputeInstanceInfo_v2_t *info = &inside[c].info;
                if (!shown++) {
                    rule('+', '-', 68);
                    print("| Compute instances:                                                 |\n"
                          "| GPU     GPU       Name             Profile   Instance   Placement  |\n"
                          "|       Instance                       ID        ID       Start:Size |\n"
                          "|         ID                                                         |"
                          "\n");
                    rule('|', '=', 68);
                }
                print("|%4u %6u       %-16s %5u %9u %10u:%-6u|\n", cards->card[i].index,
                      parts[k].info.id, inside[c].profile.name, info->first.profileId,
                      info->first.id, info->placement.start, info->placement.size);
                rule('+', '-', 68);
            }
        }
    }
    if (!shown)
        print("No compute instances found: Not Found\n");
    return shown ? EXIT_GOOD : EXIT_NOT_FOUND;
}

static bool has_value(int count, char **arguments, int at)
{
    return at + 1 < count && arguments[at + 1][0] != '-';
}

int mig_command(const struct cards *all, int count, char **arguments)
{
    /* Who removes instances names them by -gi and -ci: a word too many must not mean all. */
    enum value { NONE, OPTIONAL, NEEDED };
    static const struct {
        const char *option;
        int (*list)(const struct cards *);
        int (*change)(const struct cards *, const struct wanted *);
        enum value value;
    } verbs[] = {
        {"-lgip", list_all_gpu_profiles, NULL, NONE},
        {"-lgipp", list_placements, NULL, NONE},
        {"-lgi", list_gpu_instances, NULL, NONE},
        {"-lcip", list_compute_profiles, NULL, NONE},
        {"-lci", list_compute_instances, NULL, NONE},
        {"-cgi", NULL, gpu_instances_make, NEEDED},
        {"-dgi", NULL, gpu_instances_remove, NONE},
        {"-cci", NULL, compute_instances_make, OPTIONAL},
        {"-dci", NULL, compute_instances_remove, NONE},
    };
    struct wanted wanted = {0};
    struct cards cards = {0};
    uint verb = COUNT_OF(verbs);
    for (int i = 0; i < count; i++) {
        const char *option = arguments[i], **to = NULL;
        enum value value = NONE;
        uint found = 0;
        while (found < COUNT_OF(verbs) && !text_equal(option, verbs[found].option))
            found++;
        if (found < COUNT_OF(verbs)) {
            verb = found;
            value = verbs[found].value;
            to = &wanted.profiles;
        } else if (text_equal(option, "-C"))
            wanted.with_compute = true;
        else if (text_equal(option, "-gi") || text_equal(option, "-ci")) {
            value = NEEDED;
            to = text_equal(option, "-gi") ? &wanted.gpu_ids : &wanted.compute_ids;
        } else {
            print("Option \"%s\" is not recognized.\n", option);
            return EXIT_USAGE;
        }
        if (value != NONE && has_value(count, arguments, i))
            *to = arguments[++i];
        else if (value == NEEDED) {
            print("Option \"%s\" is missing its value.\n", option);
            return EXIT_USAGE;
        }
    }
    if (verb == COUNT_OF(verbs))
        return help_show();
    /* Profiles are shown of cards that could be cut, the rest of those that are. */
    bool only_cut = verbs[verb].list != list_all_gpu_profiles;
    for (uint i = 0; i < all->count; i++) {
        uint now, pending;
        if (nvmlDeviceGetMigMode(all->card[i].device, &now, &pending) == NVML_SUCCESS &&
            (now || !only_cut))
            cards.card[cards.count++] = all->card[i];
    }
    if (!cards.count) {
        print(only_cut ? "No MIG-enabled devices found.\n" : "No MIG-supported devices found.\n");
        return only_cut ? EXIT_GOOD : EXIT_NOT_FOUND;
    }
    return verbs[verb].list ? verbs[verb].list(&cards) : verbs[verb].change(&cards, &wanted);
}
