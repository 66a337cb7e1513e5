/*
 * Slots and objects: the simplest allocator there is, which never takes anything back.
 */
#include "root.h"

static word_t slots_taken;

cptr_t slot_new(void)
{
    cptr_t slot = boot_info->empty.start + slots_taken;
    if (slot >= boot_info->empty.end)
        leave(2);
    slots_taken++;
    return slot;
}

void must(struct result result, const char *what)
{
    if (result.error != NO_ERROR) {
        say("%s: error %d (0x%lx, 0x%lx)\n", what, (int)result.error, result.mr[0], result.mr[1]);
        leave(2);
    }
}

/* Untypeds of which something was made. */
static bool used[MAX_UNTYPEDS];

bool untyped_is_used(word_t number)
{
    return used[number];
}

/* The largest untyped of RAM that is smaller than `below` bits, or equal but behind `after`. */
static bool next_untyped(word_t *index, unsigned *bits)
{
    word_t count = boot_info->untyped.end - boot_info->untyped.start;
    unsigned best = 0;
    word_t found = count;
    for (word_t i = 0; i < count; i++) {
        const struct untyped_desc *untyped = &boot_info->untyped_list[i];
        bool later = untyped->size_bits < *bits || (untyped->size_bits == *bits && i > *index);
        if (untyped->is_device || !later)
            continue;
        if (found == count || untyped->size_bits > best) {
            best = untyped->size_bits;
            found = i;
        }
    }
    *index = found;
    *bits = best;
    return found != count;
}

cptr_t objects_new(enum object_type type, word_t size_bits, word_t count)
{
    cptr_t first = slot_new();
    for (word_t i = 1; i < count; i++)
        slot_new();
    word_t index = 0;
    unsigned bits = 64;
    struct result result = {.error = NOT_ENOUGH_MEMORY};
    while (result.error == NOT_ENOUGH_MEMORY && next_untyped(&index, &bits))
        result = untyped_retype(boot_info->untyped.start + index, type, size_bits, first, count);
    if (result.error == NO_ERROR)
        used[index] = true;
    must(result, "an object");
    return first;
}

cptr_t object_new(enum object_type type, word_t size_bits)
{
    return objects_new(type, size_bits, 1);
}

/* The table that a failed mapping lacks, told by the bits of the address that were left. */
static void make_table(cptr_t vspace, word_t vaddr, word_t bits_left)
{
    switch (bits_left) {
    case 39:
        must(table_map(object_new(OBJECT_PDPT, 0), PDPT_MAP, vspace, vaddr), "a PDPT");
        break;
    case 30:
        must(table_map(object_new(OBJECT_PAGE_DIRECTORY, 0), PAGE_DIRECTORY_MAP, vspace, vaddr),
             "a page directory");
        break;
    default:
        must(table_map(object_new(OBJECT_PAGE_TABLE, 0), PAGE_TABLE_MAP, vspace, vaddr),
             "a page table");
        break;
    }
}

void map_with_tables(cptr_t page, cptr_t vspace, word_t vaddr, word_t rights)
{
    struct result result = page_map(page, vspace, vaddr, rights);
    while (result.error == FAILED_LOOKUP && result.mr[1] == MISSING_CAPABILITY) {
        make_table(vspace, vaddr, result.mr[2]);
        result = page_map(page, vspace, vaddr, rights);
    }
    must(result, "a page");
}

cptr_t page_at(word_t vaddr)
{
    cptr_t page = object_new(OBJECT_PAGE, 0);
    map_with_tables(page, INIT_VSPACE, vaddr, RIGHT_READ | RIGHT_WRITE);
    return page;
}

/* Halves of devices' untypeds that were left over when a page was cut out. */
static struct {
    cptr_t untyped;
    word_t paddr;
    unsigned bits;
} halves[128];
static unsigned halves_count;

/* The untyped of a device that holds `paddr`, and its bits: a half that was left over, or one that is whole; 0 if there is
 * none. */
static cptr_t device_untyped(word_t paddr, unsigned *bits)
{
    for (unsigned i = 0; i < halves_count; i++) {
        if (paddr - halves[i].paddr < 1ul << halves[i].bits) {
            *bits = halves[i].bits;
            return halves[i].untyped;
        }
    }
    for (word_t i = 0; i < boot_info->untyped.end - boot_info->untyped.start; i++) {
        const struct untyped_desc *untyped = &boot_info->untyped_list[i];
        if (paddr - untyped->paddr < 1ul << untyped->size_bits) {
            *bits = untyped->size_bits;
            used[i] = true;
            return boot_info->untyped.start + i;
        }
    }
    return 0;
}

cptr_t device_page(word_t paddr)
{
    unsigned bits = 0;
    cptr_t untyped = device_untyped(paddr, &bits);
    if (untyped == 0)
        return 0;
    while (bits > PAGE_BITS) {
        bits--;
        cptr_t both = slot_new();
        slot_new();
        if (untyped_retype(untyped, OBJECT_UNTYPED, bits, both, 2).error != NO_ERROR ||
            halves_count == sizeof(halves) / sizeof(halves[0]))
            return 0;
        word_t upper = paddr >> bits & 1;
        halves[halves_count].untyped = both + !upper;
        halves[halves_count].paddr = (paddr >> bits ^ 1) << bits;
        halves[halves_count].bits = bits;
        halves_count++;
        untyped = both + upper;
    }
    cptr_t page = slot_new();
    return untyped_retype(untyped, OBJECT_PAGE, 0, page, 1).error == NO_ERROR ? page : 0;
}

void map_device(cptr_t page, word_t vaddr)
{
    map_with_tables(object_new(OBJECT_PAGE, 0), INIT_VSPACE, vaddr, RIGHT_READ);
    /* That page was for the tables on the way; it gives way to this one. */
    must(invoke(page, PAGE_MAP, WORDS(vaddr, RIGHT_READ | RIGHT_WRITE, OF_DEVICE),
                WORDS(INIT_VSPACE)),
         "a device's page");
}
