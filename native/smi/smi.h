/* The parts of the program: what each of them shows or sets. */
#ifndef HAMI_MOCK_SMI_H
#define HAMI_MOCK_SMI_H

#include "../state.h"
#include "calls.h"
#include "fields.h"
#include "print.h"

/* What the program returns, besides NVML's codes. */
enum {
    EXIT_GOOD = 0,
    EXIT_USAGE = 2,
    EXIT_NOT_FOUND = 6,
    EXIT_NO_DRIVER = 9,
    EXIT_BAD_OPTION = 255
};

struct chosen {
    uint index;
    nvmlDevice_t device;
};

struct cards {
    uint count;
    struct chosen card[MOST_CARDS];
};

/* cards.c. Each prints why it can't, and returns what the program should. */

/* Chooses the cards of a list: indices, UUIDs, bus IDs; NULL: all. */
int cards_choose(const char *ids, struct cards *cards);
/* Lists them with their MIG devices, and goes on after one that is lost. */
int cards_list(void);
/* Finds the devices of a card in MIG mode; returns how many. */
uint mig_devices(nvmlDevice_t card, nvmlDevice_t to[MOST_COMPUTE_INSTANCES]);
bool is_mig_on(nvmlDevice_t card);
/* Prints that there is no driver to talk to, or what else is wrong with it. */
int no_driver(nvmlReturn_t result);

/* processes.c */
struct running {
    nvmlProcessInfo_v2_t process;
    uint types; /* PROCESS_… */
    char name[64];
};
#define MOST_RUNNING 256u
uint processes_of(nvmlDevice_t card, struct running to[MOST_RUNNING]);
const char *process_type(uint types);
int processes_query(const struct cards *cards, const char *names, const char *format,
                    bool is_first);
int processes_names(void);
int monitor_processes(const struct cards *cards, uint index_of_round);

/* The views. */
int table_show(const struct cards *cards);
int details_show(const struct cards *cards, const char *sections);
int xml_show(const struct cards *cards);
int query_show(const struct cards *cards, const char *names, const char *format, bool is_first);
int query_names(void);
void name_print(const char *name, const char *alias, const char *unit);
int monitor_cards(const struct cards *cards, const char *groups, uint index_of_round);
int topology_show(const struct cards *cards);
int links_show(const struct cards *cards);
int mig_command(const struct cards *cards, int count, char **arguments);
int help_show(void);
int version_show(void);

/* How values of lists are written: --format. */
struct format {
    bool header, units;
};
/* Prints what is wrong with it, and returns what the program should. */
int format_read(const char *text, struct format *format);
int unknown_field(const char *name, size_t length);

/* settings.c: what -pm, -pl, -c and -mig set. */
struct setting {
    const char *option, *long_option;
    int (*set)(const struct chosen *card, const char *value);
};
extern const struct setting settings[];
extern const uint setting_count;
int settings_apply(const struct cards *cards, const struct setting *setting, const char *value);

#endif
