#ifndef STOCK_H
#define STOCK_H

#include "root.h"

/* Of the profile (ABI 09, section 1). */
#define ROOT_CNODE_BITS 17
#if FOR_SEVERAL_CORES
#define NODES 16ul
#define DOMAINS 1ul
#define SCHEDULE_ENTRIES 2ul
#else
#define NODES 1ul
#define DOMAINS 16ul
#define SCHEDULE_ENTRIES 100ul
#endif

#define OBJECT_IO_PAGE_TABLE 14

void test_start(void);
void test_invocations(void);
void test_iommu(void);
void test_debugger(void);
void test_domains(void);

#endif
