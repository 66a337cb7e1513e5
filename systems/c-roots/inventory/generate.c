/*
 * Runs on the host: writes the pattern to standard output.
 */
#include <stdio.h>

#include "pattern.h"

int main(void)
{
    uint64_t word = PATTERN_FIRST;
    for (unsigned long i = 0; i < PATTERN_WORDS; i++) {
        if (fwrite(&word, sizeof(word), 1, stdout) != 1) {
            perror("generate");
            return 1;
        }
        word = pattern_next(word);
    }
    return 0;
}
