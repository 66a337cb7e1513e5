/*
 * Drivers: I/O ports, interrupts, and what firmware has left in memory.
 */
#include "devices.h"
#include "tour.h"

#include "memory.h"

enum {
    PIT_CHANNEL_0 = 0x40,
    PIT_COMMAND = 0x43,
    PIT_RATE_CHANNEL_0 = 0x34, /* both bytes of the divisor, mode 2 */
    PIT_DIVISOR = 11932,       /* 10 ms */
    PIT_PIN = 2,               /* of the I/O APIC */
    PIT_VECTOR = 20,
};

/* The interval timer interrupts, again and again. */
static void timer_interrupts(void)
{
    cptr_t ports = slot_new(), handler = slot_new();
    cptr_t notification = object_new(OBJECT_NOTIFICATION, 0);
    EXPECT_DONE(io_port_issue(PIT_CHANNEL_0, PIT_COMMAND, ports));
    EXPECT_DONE(irq_control_get_ioapic(handler, 0, PIT_PIN, PIT_VECTOR));
    EXPECT_DONE(irq_handler_set_notification(handler, notification));
    EXPECT_DONE(io_port_out8(ports, PIT_COMMAND, PIT_RATE_CHANNEL_0));
    EXPECT_DONE(io_port_out8(ports, PIT_CHANNEL_0, PIT_DIVISOR & 0xff));
    EXPECT_DONE(io_port_out8(ports, PIT_CHANNEL_0, PIT_DIVISOR >> 8));
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_DONE(irq_handler_ack(handler));
        sys_wait(notification);
    }
    EXPECT_DONE(cnode_delete(handler));
    EXPECT_DONE(cnode_delete(ports));
}

static const uint8_t *root_pointer(void)
{
    const uint8_t *chunk = (const uint8_t *)boot_info + PAGE_BYTES;
    const uint8_t *end = chunk + boot_info->extra_len;
    for (; chunk < end; chunk += ((const struct extra_chunk *)chunk)->length) {
        if (((const struct extra_chunk *)chunk)->id == EXTRA_RSDP)
            return chunk + sizeof(struct extra_chunk);
    }
    return NULL;
}

/* ACPI's tables lie in memory that is nobody's, where a driver finds its devices. */
static void tables_of_acpi(void)
{
    const uint8_t *pointer = root_pointer();
    EXPECT(pointer != NULL);
    uint32_t address;
    memcpy(&address, pointer + 16, sizeof(address));
    cptr_t page = device_page(address & -(uint32_t)PAGE_BYTES);
    EXPECT(page != 0);
    EXPECT_EQ(page_get_address(page).mr[0], address & -(uint32_t)PAGE_BYTES);
    map_with_tables(page, INIT_VSPACE, DEVICES_AREA, RIGHT_READ);

    const uint8_t *table = (const uint8_t *)DEVICES_AREA + address % PAGE_BYTES;
    uint32_t length;
    memcpy(&length, table + 4, sizeof(length));
    EXPECT_EQ(memcmp(table, "RSDT", 4), 0);
    EXPECT(length >= 36 && address % PAGE_BYTES + length <= PAGE_BYTES);
    uint8_t sum = 0;
    for (uint32_t i = 0; i < length; i++)
        sum += table[i];
    EXPECT_EQ(sum, 0);
    say("  ACPI has %lu tables\n", (word_t)(length - 36) / 4);
}

/* A device's memory cannot be an IPC buffer. */
static void devices_hold_no_messages(void)
{
    cptr_t page = device_page(0xb8000);
    EXPECT(page != 0);
    struct result result =
        invoke(INIT_TCB, TCB_SET_IPC_BUFFER, WORDS(DEVICES_AREA + PAGE_BYTES), WORDS(page));
    EXPECT_EQ(result.error, ILLEGAL_OPERATION);
    map_with_tables(page, INIT_VSPACE, DEVICES_AREA + PAGE_BYTES, RIGHT_READ | RIGHT_WRITE);
    volatile uint8_t *screen = (volatile uint8_t *)DEVICES_AREA + PAGE_BYTES;
    screen[0] = 'C';
    EXPECT_EQ(screen[0], 'C');
}

word_t ticks_per_us(void)
{
    const uint8_t *chunk = (const uint8_t *)boot_info + PAGE_BYTES;
    for (;;) {
        const struct extra_chunk *header = (const struct extra_chunk *)chunk;
        if (header->id == EXTRA_TSC_MHZ)
            return *(const uint32_t __attribute__((aligned(1))) *)(chunk + sizeof(*header));
        chunk += header->length;
    }
}

void test_devices(void)
{
    test("timer_interrupts", timer_interrupts);
    test("tables_of_acpi", tables_of_acpi);
    test("devices_hold_no_messages", devices_hold_no_messages);
}
