/*
 * Extra boot information (ABI 06, section 4).
 */
#include "inventory.h"

static const uint8_t *chunks_start(void)
{
    return (const uint8_t *)boot_info + PAGE_BYTES;
}

const struct extra_chunk *extra_chunk(enum extra_id id)
{
    word_t at = 0;
    while (at + sizeof(struct extra_chunk) <= boot_info->extra_len) {
        const struct extra_chunk *chunk = (const struct extra_chunk *)(chunks_start() + at);
        if (chunk->id == id)
            return chunk;
        if (chunk->length < sizeof(*chunk))
            return NULL;
        at += chunk->length;
    }
    return NULL;
}

/* The least power of two of pages that holds all chunks. */
word_t extra_bytes(void)
{
    word_t bytes = boot_info->extra_len == 0 ? 0 : PAGE_BYTES;
    while (bytes < boot_info->extra_len)
        bytes *= 2;
    return bytes;
}

/* The chunks fill their length, in their order, and behind them is nothing. */
static void chunks_in_order(void)
{
    const word_t *order = extra_order;
    word_t at = 0;
    unsigned place = 0;
    while (at < boot_info->extra_len) {
        const struct extra_chunk *chunk = (const struct extra_chunk *)(chunks_start() + at);
        EXPECT(chunk->length >= sizeof(*chunk));
        while (order[place] != 0 && order[place] != chunk->id)
            place++;
        EXPECT(order[place] != 0);
        at += chunk->length;
    }
    EXPECT_EQ(at, boot_info->extra_len);
    EXPECT(all_zero(chunks_start() + at, extra_bytes() - at));
}

void test_extra_boot_info(void)
{
    test("chunks_in_order", chunks_in_order);
    test_own_extra_boot_info();
}
