/* SPDX-License-Identifier: BSD-3-Clause */
/* cast.h - for the other headers of this folder, which undefine it at their end: C++ needs a cast where C needs none */
#ifdef __cplusplus
#define QUORLOCK_CAST(type, value) static_cast<type>(value)
#else
#define QUORLOCK_CAST(type, value) ((type)(value))
#endif
