// Ordinary HIP sources include this; everything is in one header.
#pragma once
#include "../kiln_hip.h"
