/*
 * What the inventory knows of aarch64.
 */
#ifndef OWN_INVENTORY_H
#define OWN_INVENTORY_H

#include "abi.h"

#define NO_IOMMU 0
/* Slots without a capability that other architectures have one in. */
#define OWN_NULL_SLOTS INIT_IO_PORT_CONTROL
#define DEVICE_TOP (1ul << 40)
/* Most bytes of RAM that nobody is given. */
#define MOST_KEPT (1ul << 20)

#endif
