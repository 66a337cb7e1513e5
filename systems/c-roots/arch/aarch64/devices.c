/*
 * Drivers: interrupts, and what the loader has left in memory.
 */
#include "devices.h"
#include "tour.h"

#include "memory.h"

/* The serial port interrupts when it has sent a byte, again and again. */
static void device_interrupts(void)
{
    cptr_t handler = slot_new();
    cptr_t notification = object_new(OBJECT_NOTIFICATION, 0);
    EXPECT_DONE(irq_control_get(handler, SERIAL_IRQ));
    EXPECT_DONE(irq_handler_set_notification(handler, notification));
    serial_port[PL011_CLEAR / 4] = PL011_TRANSMITTED;
    serial_port[PL011_MASK / 4] = PL011_TRANSMITTED;
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_DONE(irq_handler_ack(handler));
        EXPECT_EQ(sys_nb_wait(notification).badge, 0);
        console_put(i < 2 ? ' ' : '\n');
        sys_wait(notification);
        serial_port[PL011_CLEAR / 4] = PL011_TRANSMITTED;
    }
    serial_port[PL011_MASK / 4] = 0;
    EXPECT_DONE(cnode_delete(handler));
}

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* The device tree is behind the boot information, whole. */
static void device_tree(void)
{
    enum { MAGIC = 0xd00dfeed };
    const uint8_t *chunk = (const uint8_t *)boot_info + PAGE_BYTES;
    const struct extra_chunk *header = (const struct extra_chunk *)chunk;
    EXPECT(boot_info->extra_len > sizeof(*header));
    EXPECT_EQ(header->id, EXTRA_DEVICE_TREE);
    const uint8_t *tree = chunk + sizeof(*header);
    EXPECT_EQ(big_endian(tree), MAGIC);
    EXPECT_EQ(big_endian(tree + 4), header->length - sizeof(*header));
    say("  the device tree has %lu bytes\n", (word_t)big_endian(tree + 4));
}

/* A device's memory cannot be an IPC buffer. The device is QEMU's, which says who it is. */
static void devices_hold_no_messages(void)
{
    enum { FIRMWARE_CONFIGURATION = 0x9020000, SELECTOR = 8 };
    cptr_t page = device_page(FIRMWARE_CONFIGURATION);
    EXPECT(page != 0);
    struct result result =
        invoke(INIT_TCB, TCB_SET_IPC_BUFFER, WORDS(DEVICES_AREA + PAGE_BYTES), WORDS(page));
    EXPECT_EQ(result.error, ILLEGAL_OPERATION);
    map_device(page, DEVICES_AREA + PAGE_BYTES);
    volatile uint8_t *device = (volatile uint8_t *)DEVICES_AREA + PAGE_BYTES;
    *(volatile uint16_t *)(device + SELECTOR) = 0;
    static const char name[] = "QEMU";
    for (unsigned i = 0; i < 4; i++)
        EXPECT_EQ(*device, name[i]);
}

word_t ticks_per_us(void)
{
    word_t hz;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz / 1000000;
}

void test_devices(void)
{
    test("device_interrupts", device_interrupts);
    test("device_tree", device_tree);
    test("devices_hold_no_messages", devices_hold_no_messages);
}
