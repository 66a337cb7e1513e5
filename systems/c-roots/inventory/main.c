/*
 * A root task of 30 MiB, with almost as many capabilities as its CNode has slots, that goes
 * through everything it was given: each field of the boot information, each capability, each
 * untyped, each page.
 */
#include "inventory.h"

static uint8_t window[PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));

void *window_open(cptr_t frame)
{
    must(page_unmap(image_frame(window)), "the window's own frame");
    must(page_map(frame, INIT_VSPACE, (word_t)window, RIGHT_READ | RIGHT_WRITE), "the window");
    return window;
}

void window_close(cptr_t frame)
{
    must(page_unmap(frame), "a frame in the window");
    must(page_map(image_frame(window), INIT_VSPACE, (word_t)window, RIGHT_READ | RIGHT_WRITE),
         "the window's own frame");
}

void root_main(void)
{
    struct range image = image_range();
    say("C root task: inventory, image 0x%lx to 0x%lx, %lu frames, %lu untypeds, %lu empty slots\n",
        image.start, image.end,
        boot_info->user_image_frames.end - boot_info->user_image_frames.start,
        boot_info->untyped.end - boot_info->untyped.start,
        boot_info->empty.end - boot_info->empty.start);
    test_boot_info();
    test_extra_boot_info();
    /* Before the first object is made, so that nothing is used yet. */
    test_untypeds();
    test_image();
    test_capabilities();
}
