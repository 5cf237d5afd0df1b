#include "kern/kern.h"
#include "kern/kern_ecq.h"
#include "kern/kern_tcq.h"
#include "kern/ref.h"

#if defined(__aarch64__) && defined(__ARM_NEON) && \
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

#include <arm_neon.h>
#include <string.h>

#define WIDE_BYTES 16
#define WIDE_LOW(v) \
	(wide_f64)vcvt_f64_f32(vget_low_f32((float32x4_t)(v)))
#define WIDE_HIGH(v) (wide_f64)vcvt_high_f64_f32((float32x4_t)(v))
#define WIDE_NARROW(a, b) (wide_f32)vcvt_high_f32_f64( \
	vcvt_f32_f64((float64x2_t)(a)), (float64x2_t)(b))
#define WIDE_MIN(a, b) \
	(wide_f32)vminq_f32((float32x4_t)(a), (float32x4_t)(b))
#define WIDE_MAX(a, b) \
	(wide_u32)vmaxq_u32((uint32x4_t)(a), (uint32x4_t)(b))
#define WIDE_TOP(v) vmaxvq_u32((uint32x4_t)(v))
#define WIDE_BITS(v) bits4((uint32x4_t)(v))
#define WIDE_PUT8(p, v) put8(p, (uint32x4_t)(v))
#define WIDE_PUT16(p, v) \
	vst1_u16((uint16_t *)(void *)(p), vmovn_u32((uint32x4_t)(v)))
#define WIDE_PUT32(p, v) put32(p, (const int32x4_t *)(v))
#define WIDE_GET8(p) (wide_u32)get8(p)
#define WIDE_GET16(p) (wide_u32)vmovl_s16( \
	vld1_s16((const int16_t *)(const void *)(p)))
#define WIDE_PUT_F16(p, v) vst1_u16(p, vreinterpret_u16_f16( \
	vcvt_f16_f32((float32x4_t)(v))))
#define WIDE_GET_F16(p) (wide_f32)vcvt_f32_f16( \
	vreinterpret_f16_u16(vld1_u16(p)))
#define WIDE_OF4(t, i) (wide_f32)of4(vld1q_f32(t), (uint32x4_t)(i))

/* Return t[i] for each i: look up the bytes from 4 i to 4 i + 3. */
static inline uint8x16_t
of4(float32x4_t t, uint32x4_t i)
{
	return vqtbl1q_u8(vreinterpretq_u8_f32(t), vreinterpretq_u8_u32(
	    vmlaq_n_u32(vdupq_n_u32(0x03020100),
	    vandq_u32(i, vdupq_n_u32(3)), 0x04040404)));
}

static inline unsigned
bits4(uint32x4_t v)
{
	static const int32_t place[] = { 0, 1, 2, 3 };

	return vaddvq_u32(vshlq_u32(vshrq_n_u32(v, 31), vld1q_s32(place)));
}

static inline void
put8(unsigned char *p, uint32x4_t v)
{
	uint16x4_t t = vmovn_u32(v);
	uint32_t u = vget_lane_u32(vreinterpret_u32_u8(
	    vmovn_u16(vcombine_u16(t, t))), 0);

	memcpy(p, &u, sizeof(u));
}

static inline void
put32(unsigned char *p, const int32x4_t v[8])
{
	int8x8_t t[4];
	int i;

	for (i = 0; i < 4; i++)
		t[i] = vqmovn_s16(vcombine_s16(vqmovn_s32(v[2 * i]),
		    vqmovn_s32(v[2 * i + 1])));
	vst1q_s8((int8_t *)p, vcombine_s8(t[0], t[1]));
	vst1q_s8((int8_t *)p + 16, vcombine_s8(t[2], t[3]));
}

static inline uint32x4_t
get8(const unsigned char *p)
{
	uint32_t u;

	memcpy(&u, p, sizeof(u));
	return vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(u))));
}

#include "kern/wide.h"

const struct kern kern_neon = {
	.name = "neon",
	WIDE_ROWS,
	.at_least = wide_at_least,
	KERN_TCQ_ROWS
};

#else

const struct kern kern_neon = { .name = NULL };

#endif
