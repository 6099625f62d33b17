/* The state file as this process sees it: where it is, which cards, and what they show now. */
#ifndef HAMI_MOCK_STATE_H
#define HAMI_MOCK_STATE_H

#include "layout.h"
#include "nvml.h"
#include "system.h"

/* What a device's handle stands for. MIG's instance IDs are below these two. */
#define GPU_INSTANCE_IDS 32u
#define COMPUTE_INSTANCE_IDS 8u

struct place {
    uint card;             /* in the file */
    bool is_mig;           /* one MIG device of it only: the compute instance below */
    uint gpu_instance;     /* NO_INSTANCE: the whole card */
    uint compute_instance; /* likewise */
};

/* library.c: how often this process has called nvmlInit more than nvmlShutdown. */
bool state_ready(void);

/* Does a process use what a handle stands for: the card, or a MIG device of it? */
static inline bool is_inside(const struct process *process, const struct place *place)
{
    return !place->is_mig || (process->gpu_instance == place->gpu_instance &&
                              process->compute_instance == place->compute_instance);
}

/* Opens the file and chooses the cards. */
nvmlReturn_t state_open(void);
/* The folder that it is in, with no slash at its end. */
const char *state_folder(void);
const struct header *state_header(void);
const struct identity *state_identity(uint card);
/* Since Ada, cards say how far they are from their limits; before, what these are. */
static inline bool has_temperature_margin(const struct identity *identity)
{
    enum { ADA = 8 };
    return identity->architecture >= ADA;
}
/* Memory with errors: its pages are retired where no spare rows can take their place. */
static inline bool retires_pages(const struct identity *identity)
{
    return (identity->flags & (FLAG_ECC | FLAG_ROW_REMAPPER)) == FLAG_ECC;
}
/* Follows the file if another one has taken its place. */
void state_follow(void);
/* Keeps another file from coming, for a moment. */
void state_hold(void);
void state_release(void);

/* Does something that finds cards by their numbers, again if another file has come meanwhile. What
 * the caller gave must still be there then. */
uint32_t state_file(void);
bool state_is_still(uint32_t file);
/* A file that has moved, and still is where one looks for it, is opened anew each time. */
#define MOST_LOOKS 16u
#define IN_ONE_FILE(call) \
    ({ \
        nvmlReturn_t done_; \
        uint32_t file_, left_ = MOST_LOOKS; \
        do { \
            file_ = state_file(); \
            done_ = (call); \
        } while (!state_is_still(file_) && --left_); \
        done_; \
    })

/* Copies a part of a card's live record as it was at one moment. */
nvmlReturn_t live_copy(uint card, size_t offset, void *to, size_t size);
/* The same for whoever opens the file, while it may not yet be used by others. */
nvmlReturn_t live_peek(uint card, size_t offset, void *to, size_t size);
#define LIVE_FIELD(card, field, to) \
    live_copy(card, offsetof(struct live, field), to, sizeof((struct live *)0)->field)
/* All of it up to the processes. */
#define LIVE_NUMBERS offsetof(struct live, processes)

/* visible.c: the cards that this process may see, in the order of their indices. */
void visible_choose(void);
uint visible_count(void);
uint visible_card(uint index);
/* Returns NO_INSTANCE if the process may not see it. */
uint visible_index(uint card);
bool visible_mig(const char *uuid);
/* Bytes that HAMi allows on the card; 0: all. */
uint64_t visible_memory_limit(uint card);
/* What HAMi calls this container; empty: it isn't one of HAMi's. */
const char *visible_owner(void);

/* numbers.c: copies a part of the live record of a whole card. */
nvmlReturn_t live_of(nvmlDevice_t device, size_t offset, void *to, size_t size);

/* handles.c */
nvmlReturn_t place_of(nvmlDevice_t device, struct place *place);
/* The same for what only a whole card has, and only while it isn't lost. */
nvmlReturn_t card_of(nvmlDevice_t device, uint *card);
/* The same for what a card doesn't say any more that MIG has cut: how busy it is. */
nvmlReturn_t uncut_card_of(nvmlDevice_t device, uint *card);
nvmlDevice_t device_handle(uint card);
nvmlDevice_t mig_handle(uint card, uint gpu_instance, uint compute_instance);
/* Which of the handles is a card's, from now on in every file that has the card. */
uint handle_number(uint card);
/* Finds the cards of all handles in a file that has just been opened. */
void handles_follow(void);

/* events.c, gpm.c: free what clients forgot to. */
void events_forget(void);
void gpm_forget(void);

/* For getters with many ways out: returns a result that isn't a success. */
#define TRY(call) \
    do { \
        nvmlReturn_t result_ = (call); \
        if (result_ != NVML_SUCCESS) \
            return result_; \
    } while (0)
#define NEED(condition, otherwise) \
    do { \
        if (!(condition)) \
            return otherwise; \
    } while (0)
/* Whatever else is wrong: nothing is said before nvmlInit. */
#define OTHERWISE(result) (state_ready() ? (result) : NVML_ERROR_UNINITIALIZED)
#define NEED_ARGUMENT(condition) NEED(condition, OTHERWISE(NVML_ERROR_INVALID_ARGUMENT))
#define NEED_VERSION(record, type, number) \
    NEED((record)->version == VERSION_OF(type, number), \
         OTHERWISE(NVML_ERROR_ARGUMENT_VERSION_MISMATCH))

/* Copies a text for a caller who says how much room there is. */
nvmlReturn_t give_text(char *to, uint size, const char *text);

#endif
